//! The cell store on a strict flash, without cuts.
#![allow(clippy::unwrap_used, clippy::panic)]

use bellwether::cells::{
    BootEpoch, Error, Geometry, Layout, LayoutError, Path, Progress, Provisioning, Reason, Sector,
    Verdict, Which, keys,
};
use bellwether_flash::nor::{Record, Tear, Worn};
use bellwether_flash::scenario::{Bench, Cells, Halt, Note, OldNote, Step, finish, holds_key};
use bellwether_flash::{Nor, until_cut};

type Flash = Nor<4, 4096>;

fn bench() -> Bench<4, 4096> {
    Bench::new(4)
}

fn provisioned() -> Flash {
    let mut flash = bench().flash(1);
    let (mut store, report) = bench().open(&mut flash).unwrap();
    assert_eq!(report.provisioning, Provisioning::Blank);
    let step = Step::Provision { chunks: vec![vec![1; 100], vec![2; 300]], first_epoch: 100 };
    bench().run(&mut store, &step).unwrap();
    flash
}

fn save(store: &mut Cells<'_, 4, 4096>, byte: u8, length: usize, path: Path) -> Result<(), Error> {
    until_cut(store.save_election(1, &vec![byte; length], &[], path, true)).unwrap()
}

fn newest(store: &mut Cells<'_, 4, 4096>) -> u8 {
    let election = store.election(0).unwrap();
    election.unwrap().state[0]
}

/// Spoils every record of a key in a range of addresses.
fn spoil(flash: &mut Flash, key: u8, bit: u8, within: core::ops::Range<u32>) -> usize {
    let places: Vec<u32> = within
        .step_by(4)
        .filter(|at| {
            let here = &flash.bytes()[*at as usize..];
            here[0] == key && here[1] == 1 && here.get(3) == Some(&0) && here[2] > 0
        })
        .collect();
    for at in &places {
        flash.decay(at + 13, bit);
    }
    places.len()
}

#[test]
fn d2_the_new_epoch_is_two_above_the_largest_good_one() {
    let mut flash = provisioned();
    for expected in [102, 104, 106] {
        let (mut store, report) = bench().open(&mut flash).unwrap();
        assert_eq!(report.provisioning, Provisioning::Complete);
        let mut lease = finish(store.begin_epoch()).unwrap();
        assert_eq!(lease.epoch(), BootEpoch(expected));
        assert_eq!(lease.next_number(), Some(u64::from(expected) << 32 | 1));
        assert_eq!(lease.next_number(), Some(u64::from(expected) << 32 | 2));
    }
    // A board that is provisioned again starts above both floors.
    let (mut store, _) = bench().open(&mut flash).unwrap();
    finish(store.complete_provisioning(2, BootEpoch(50))).unwrap();
    let lease = finish(store.begin_epoch()).unwrap();
    assert_eq!(lease.epoch(), BootEpoch(110));
}

#[test]
fn d3_values_existed_and_no_copy_is_readable_so_the_node_stays_mute() {
    let mut flash = provisioned();
    let half = bench().layout().b.start;
    assert!(spoil(&mut flash, keys::EPOCH, 3, 0..half) > 0);
    let (_, report) = bench().open(&mut flash).unwrap();
    assert_eq!(report.provisioning, Provisioning::Complete);
    assert_eq!(report.region(Which::A).verdict(), Verdict::Torn);
    assert_eq!(report.region(Which::B).verdict(), Verdict::Good);
    assert!(spoil(&mut flash, keys::EPOCH, 4, 0..2 * half) > 1);
    for _ in 0..3 {
        let (mut store, report) = bench().open(&mut flash).unwrap();
        let key = keys::EPOCH;
        assert_eq!(report.provisioning, Provisioning::Unreadable { key });
        let refused = finish(store.begin_epoch());
        let reason = Reason::Unreadable { key };
        assert!(matches!(refused, Err(Halt::Failed(error)) if error.reason == reason));
    }
}

#[test]
fn a_blank_or_foreign_flash_is_mute_and_can_be_provisioned() {
    let mut flash = bench().flash(1);
    let (mut store, _) = bench().open(&mut flash).unwrap();
    let refused = finish(store.begin_epoch());
    assert!(matches!(refused, Err(Halt::Failed(error)) if error.reason == Reason::Unprovisioned));
    for address in (0..flash.bytes().len() as u32).step_by(97) {
        flash.decay(address, 5);
    }
    let (mut store, report) = bench().open(&mut flash).unwrap();
    assert_eq!(report.provisioning, Provisioning::Debris);
    finish(store.format()).unwrap();
    let step = Step::Provision { chunks: vec![vec![7; 10]], first_epoch: 1 };
    bench().run(&mut store, &step).unwrap();
    bench().run(&mut store, &Step::Boot).unwrap();
}

#[test]
fn a_newer_format_is_refused_and_never_overwritten() {
    let mut flash = provisioned();
    let (mut store, _) = bench().open(&mut flash).unwrap();
    finish(store.save_cell(&OldNote(7), Path::Idle, true)).unwrap();
    assert_eq!(finish(store.migrate::<Note>()), Ok(true));
    assert_eq!(finish(store.migrate::<Note>()), Ok(false));
    let newer = Reason::NewerFormat { stored: 2 };
    let failed = |result: Result<(), Halt>| match result {
        Err(Halt::Failed(error)) => error.reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(store.load_cell::<OldNote>().unwrap_err().reason, newer);
    assert_eq!(failed(finish(store.migrate::<OldNote>()).map(drop)), newer);
    assert_eq!(failed(finish(store.save_cell(&OldNote(8), Path::Idle, true))), newer);
    assert_eq!(store.load_cell::<Note>(), Ok(Some(Note(7))));
    // The election ring as a whole.
    finish(store.save_election(3, &[1; 20], &[], Path::Idle, true)).unwrap();
    let older = store.save_election(2, &[2; 20], &[], Path::Idle, true);
    assert_eq!(failed(finish(older)), Reason::NewerFormat { stored: 3 });
}

#[test]
fn a_decayed_format_byte_is_no_newer_format() {
    let mut flash = provisioned();
    let (mut store, _) = bench().open(&mut flash).unwrap();
    save(&mut store, 1, 20, Path::Idle).unwrap();
    // The first election lies in slot 0; its format is the second byte of the record.
    let bytes = store.flash_mut().bytes();
    let at = (0..bytes.len() / 2)
        .step_by(4)
        .find(|at| bytes[*at..*at + 4] == [keys::ELECTIONS, 1, 28, 0])
        .unwrap();
    store.flash_mut().decay(at as u32 + 1, 3);
    save(&mut store, 2, 20, Path::Answer).unwrap();
    assert_eq!(newest(&mut store), 2);
}

#[test]
fn the_account_is_exact_and_a_save_on_the_path_of_an_answer_never_erases() {
    let mut flash = provisioned();
    let (mut store, _) = bench().open(&mut flash).unwrap();
    for round in 0..20 {
        finish(store.prepare()).unwrap();
        let length = 60 + 7 * round;
        let promised = store.writes_before_erase(length + 8);
        let before: u32 = store.flash_mut().erases.iter().sum();
        let mut fitted = 0;
        while save(&mut store, fitted as u8, length, Path::Answer).is_ok() {
            fitted += 1;
        }
        // Records that replace one of the oldest sector leave more room than was promised.
        assert!(fitted >= promised, "{fitted} of {promised}");
        assert!(fitted <= promised + 8, "{fitted} of {promised}");
        let after: u32 = store.flash_mut().erases.iter().sum();
        assert_eq!(before, after);
        assert_eq!(newest(&mut store), (fitted - 1) as u8);
        assert!(store.counters().saves_refused as usize == round + 1);
    }
}

#[test]
fn what_a_configuration_is_promised_is_kept() {
    let geometry = Geometry { word_bytes: 4, sector_bytes: 4096, sectors: 4 };
    for length in [40_u32, 100, 200] {
        let mut flash = provisioned();
        let (mut store, _) = bench().open(&mut flash).unwrap();
        for number in 0..200 {
            save(&mut store, number as u8, length as usize, Path::Idle).unwrap();
            finish(store.prepare()).unwrap();
            let promised = geometry.writes_guaranteed(2, store.live_bytes(), length + 8);
            let real = store.writes_before_erase(length as usize + 8);
            assert!(real >= promised, "{length}: {real} of {promised}");
        }
        let live = store.live_bytes();
        assert!(live <= geometry.live_bytes_max(length + 8));
    }
}

#[test]
fn preparing_goes_step_by_step_one_region_at_a_time() {
    let mut flash = provisioned();
    let (mut store, _) = bench().open(&mut flash).unwrap();
    while save(&mut store, 1, 200, Path::Answer).is_ok() {}
    assert!(store.needs_preparing(Which::A) && store.needs_preparing(Which::B));
    let mut steps = 0;
    loop {
        store.flash_mut().record(Record::Log);
        if finish(store.prepare_step(Which::A)).unwrap() == Progress::Done {
            break;
        }
        let operations = &store.flash_mut().operations;
        assert!(operations.iter().filter(|one| one.erase).count() <= 1);
        assert!(operations.len() <= 9);
        steps += 1;
        // A save between two steps is always possible in the region that was made ready.
        assert!(steps < 100);
    }
    assert!(!store.needs_preparing(Which::A) && store.needs_preparing(Which::B));
}

#[test]
fn a_worn_sector_is_named_and_the_old_value_stays_readable() {
    for how in [Worn::Loud, Worn::Silent] {
        for which in Which::BOTH {
            for sector in 0..4_u8 {
                let mut flash = provisioned();
                let (mut store, _) = bench().open(&mut flash).unwrap();
                for number in 0..30 {
                    save(&mut store, number, 90, Path::Idle).unwrap();
                }
                let in_flash = sector + if which == Which::B { 4 } else { 0 };
                flash.wear_out(in_flash.into(), how);
                let (mut store, _) = bench().open(&mut flash).unwrap();
                let mut last = newest(&mut store);
                // A sector that fails silently is passed by some rebuilds of the region first.
                let failure = (31..2000_u32).find_map(|number| {
                    let number = (number % 251) as u8;
                    let failed = save(&mut store, number, 90, Path::Idle).err();
                    if failed.is_none() {
                        last = number;
                    }
                    failed.map(|error| (number, error))
                });
                let (attempted, error) =
                    failure.unwrap_or_else(|| panic!("{how:?} sector {sector} was never needed"));
                assert_eq!(error.region, Some(which), "{error}");
                assert_eq!(error.sector.map(Sector::number), Some(sector), "{error}");
                assert!(
                    matches!(
                        error.reason,
                        Reason::ProgramFailed | Reason::EraseFailed | Reason::VerifyMismatch
                    ),
                    "{error}"
                );
                let seen = newest(&mut store);
                assert!(seen == last || seen == attempted, "{seen} {last} {attempted}");
                let (mut store, _) = bench().open(&mut flash).unwrap();
                let seen = newest(&mut store);
                assert!(seen == last || seen == attempted, "{seen} {last} {attempted}");
            }
        }
    }
}

#[test]
fn a_full_store_refuses_and_keeps_everything() {
    let bench = Bench::<4, 4096>::new(3);
    let mut flash = bench.flash(1);
    let (mut store, _) = bench.open(&mut flash).unwrap();
    for chunk in 0..8 {
        let staged = finish(store.stage_chunk(chunk, 1, &[chunk; 512]));
        let Err(Halt::Failed(error)) = staged else {
            continue;
        };
        assert_eq!(error.reason, Reason::Full);
        assert!(chunk > 3);
        return;
    }
    panic!("four kilobytes fitted into a sector");
}

#[test]
fn layouts_that_cannot_work_are_refused() {
    let try_layout = |a, b| {
        let mut flash = Flash::new(12, 1);
        match finish(Cells::<4, 4096>::open(&mut flash, &Layout { a, b })).map(drop) {
            Err(Halt::Failed(error)) => error.reason,
            other => panic!("{other:?}"),
        }
    };
    let reason = Reason::Layout;
    assert_eq!(try_layout(0..0x4000, 0x3000..0x6000), reason(LayoutError::Overlap));
    assert_eq!(try_layout(0..0x2000, 0x3000..0x6000), reason(LayoutError::TooFewSectors));
    assert_eq!(try_layout(0..0x9000, 0x9000..0xC000), reason(LayoutError::TooManySectors));
    assert_eq!(try_layout(0..0x3010, 0x4000..0x8000), reason(LayoutError::NotOnSectors));
    assert_eq!(try_layout(0..0x3000, 0x8000..0x10000), reason(LayoutError::NotOnSectors));
}

#[test]
fn the_caches_take_at_most_512_bytes() {
    let bytes = Cells::<4, 4096>::CACHE_BYTES;
    println!(
        "caches {bytes} bytes, the whole store with its record buffer {}",
        size_of::<bellwether::cells::Store<(), 8, 704>>()
    );
    assert!(bytes <= 512);
}

#[test]
fn the_map_reads_what_the_store_wrote() {
    use sequential_storage::cache::Cache;
    use sequential_storage::map::{MapConfig, MapStorage};
    let mut flash = provisioned();
    let (mut store, _) = bench().open(&mut flash).unwrap();
    for number in 0..40 {
        save(&mut store, number, 90, Path::Idle).unwrap();
    }
    for range in [bench().layout().a, bench().layout().b] {
        let config = MapConfig::try_new(range).unwrap();
        let cache = Cache::new_uncached();
        let mut map = MapStorage::<u8, _, _>::new(&mut flash, config, cache);
        let mut buffer = [0; 1024];
        // Election 39 is in slot 7.
        let key = keys::ELECTIONS + 7;
        let fetched = until_cut(map.fetch_item::<&[u8]>(&mut buffer, &key)).unwrap();
        let value = fetched.unwrap().unwrap();
        assert_eq!(value[0], 1, "the format comes after the key");
        assert_eq!(&value[11 + 8..11 + 8 + 90], [39; 90]);
    }
}

#[test]
fn power_can_be_cut_at_a_time_in_the_past() {
    for tear in Tear::ALL {
        let mut flash = provisioned();
        flash.tear = tear;
        let (mut store, _) = bench().open(&mut flash).unwrap();
        save(&mut store, 1, 100, Path::Idle).unwrap();
        store.flash_mut().record(Record::Journal);
        let begins = store.flash_mut().elapsed_ns;
        save(&mut store, 2, 100, Path::Answer).unwrap();
        let lasts = store.flash_mut().elapsed_ns - begins;
        let mut seen = [0; 3];
        for at in (0..=lasts).step_by(lasts as usize / 50) {
            let mut cut = flash.clone();
            cut.cut_back(begins + at);
            assert!(cut.is_dead());
            cut.power_up();
            let (mut store, _) = bench().open(&mut cut).unwrap();
            seen[usize::from(newest(&mut store))] += 1;
        }
        assert!(seen[1] > 5 && seen[2] > 5, "{seen:?}");
    }
}

#[test]
fn a_configuration_whose_worst_election_needs_an_erase_is_refused() {
    let mut flash = provisioned();
    let (mut store, _) = bench().open(&mut flash).unwrap();
    let reason = |result: Result<(), Error>| result.map_err(|error| error.reason);
    assert_eq!(reason(store.check_election(100, 3)), Ok(()));
    assert_eq!(reason(store.check_election(100, 67)), Err(Reason::NotPrepared));
    assert_eq!(reason(store.check_election(640, 1)), Err(Reason::NotPrepared));
    assert_eq!(reason(store.check_election(900, 1)), Err(Reason::Full));
    // One more spare sector is 29 more saves of 100 bytes.
    store.set_spare_pages(3);
    assert_eq!(reason(store.check_election(100, 40)), Ok(()));
}

#[test]
fn a_changed_key_is_nowhere_left_after_idle_time() {
    let mut flash = provisioned();
    let (mut store, _) = bench().open(&mut flash).unwrap();
    assert_eq!(store.keys(), Ok(None));
    bench().run(&mut store, &Step::ReplaceKeys(1)).unwrap();
    assert!(store.is_wiped(), "there was nothing before");
    for number in 0..30 {
        save(&mut store, number, 90, Path::Idle).unwrap();
    }
    for id in 2..5 {
        bench().run(&mut store, &Step::ReplaceKeys(id)).unwrap();
        assert!(!store.is_wiped() && store.needs_preparing(Which::A));
        assert!(holds_key(store.flash_mut().bytes(), id - 1));
        // One region at a time, and saves go on in between.
        for which in Which::BOTH {
            let mut steps = 0;
            loop {
                store.flash_mut().record(Record::Log);
                if finish(store.prepare_step(which)).unwrap() == Progress::Done {
                    break;
                }
                let erases = store.flash_mut().operations.iter().filter(|one| one.erase).count();
                assert!(erases <= 1, "a save would wait for {erases} erases");
                steps += 1;
                assert!(steps < 200);
                if steps % 5 == 0 {
                    save(&mut store, steps as u8, 90, Path::Answer).unwrap();
                }
            }
        }
        assert!(store.is_wiped());
        assert!((1..id).all(|old| !holds_key(store.flash_mut().bytes(), old)));
        assert_eq!(store.keys().unwrap().unwrap().send.id, id);
        // And so it stays: the next boot has nothing to wipe.
        let before: u32 = store.flash_mut().erases.iter().sum();
        let report = bench().open(&mut flash).unwrap().1;
        assert_eq!(report.provisioning, Provisioning::Complete);
        assert_eq!(flash.erases.iter().sum::<u32>(), before);
        store = bench().open(&mut flash).unwrap().0;
    }
}

#[test]
fn a_wipe_that_a_board_had_no_time_for_is_done_after_the_next_boot() {
    let mut flash = provisioned();
    let (mut store, _) = bench().open(&mut flash).unwrap();
    bench().run(&mut store, &Step::ReplaceKeys(1)).unwrap();
    bench().run(&mut store, &Step::ReplaceKeys(2)).unwrap();
    bench().run(&mut store, &Step::ReplaceKeys(3)).unwrap();
    assert!(holds_key(flash.bytes(), 1) && holds_key(flash.bytes(), 2));
    let (mut store, report) = bench().open(&mut flash).unwrap();
    assert_eq!(report.provisioning, Provisioning::Complete);
    assert!(!store.is_wiped());
    finish(store.prepare()).unwrap();
    assert!(store.is_wiped());
    assert_eq!(store.keys().unwrap().unwrap().send.id, 3);
    assert!(!holds_key(flash.bytes(), 1) && !holds_key(flash.bytes(), 2));
}

#[test]
fn d2_each_incarnation_has_its_own_epochs_and_their_end_is_an_end() {
    let first = |incarnation| BootEpoch::first_of(incarnation).unwrap();
    assert_eq!(first(3).0 - first(2).0, 2 * (BootEpoch::BOOTS_MAX + 1));
    assert_eq!(BootEpoch::first_of(BootEpoch::INCARNATION_MAX + 1), None);
    let mut flash = provisioned();
    let (mut store, _) = bench().open(&mut flash).unwrap();
    // Provisioned just before the end of its block.
    finish(store.complete_provisioning(2, BootEpoch(first(3).0 - 4))).unwrap();
    assert_eq!(finish(store.begin_epoch()).unwrap().epoch(), BootEpoch(first(3).0 - 2));
    let exhausted = |result: Result<(), Halt>| matches!(result, Err(Halt::Failed(error)) if error.reason == Reason::Exhausted);
    assert!(exhausted(finish(store.begin_epoch()).map(drop)));
    assert!(exhausted(finish(store.complete_provisioning(2, first(3)))));
    finish(store.complete_provisioning(3, first(3))).unwrap();
    assert_eq!(finish(store.begin_epoch()).unwrap().epoch(), BootEpoch(first(3).0 + 2));
}

#[test]
fn an_image_can_be_shown() {
    let flash = provisioned();
    let image = bellwether_flash::show::Image {
        bytes: flash.bytes().to_vec(),
        sector_bytes: 4096,
        word_bytes: 4,
        layout: bench().layout(),
    };
    let text = bellwether_flash::show::show(&image).unwrap();
    assert!(text.starts_with("Complete\nregion A: Good"), "{text}");
    assert!(text.contains(" 1 boot epoch: format 1, [100, 0, 0, 0]"), "{text}");
    assert!(text.contains("13 chunk: format 1, 304 bytes"), "{text}");
}

#[test]
fn futures_are_small() {
    let mut flash = provisioned();
    let layout = bench().layout();
    println!("open: {} bytes", size_of_val(&Cells::<4, 4096>::open(&mut flash, &layout)));
    let (mut store, _) = bench().open(&mut flash).unwrap();
    println!("begin_epoch: {} bytes", size_of_val(&store.begin_epoch()));
    println!("prepare: {} bytes", size_of_val(&store.prepare()));
    let save = store.save_election(1, &[], &[], Path::Answer, true);
    println!("save_election: {} bytes", size_of_val(&save));
    assert!(size_of_val(&save) < 8192);
}

#[test]
fn a_pinned_value_has_two_new_records() {
    let mut flash = provisioned();
    let (mut store, _) = bench().open(&mut flash).unwrap();
    finish(store.save(keys::TRANSACTION, 1, b"vote", Path::Idle, true)).unwrap();
    let before = store.flash_mut().programs;
    finish(store.pin(keys::TRANSACTION)).unwrap();
    assert!(store.flash_mut().programs >= before + 4);
    let (mut store, report) = bench().open(&mut flash).unwrap();
    assert_eq!(report.region(Which::B).verdict(), Verdict::Good);
    let vote = store.load(keys::TRANSACTION).unwrap().unwrap();
    assert_eq!(vote.value, b"vote");
}
