//! Bellwether on the SmartFusion2 SOM (in QEMU: emcraft-sf2).
#![no_std]
#![no_main]

mod arrivals;
mod clock;
#[cfg(feature = "provoke")]
mod cost;
mod ethernet;
mod executor;
mod flash;
mod interrupts;
mod memory;
#[cfg(feature = "provoke")]
mod provoke;
mod queue;
mod registers;
mod retained;

use bellwether::cells::task::{Answer, Request};
use bellwether::cells::{self, Geometry, Layout, Part};
use bellwether::effects::Effects;
use bellwether::node::Node;
use bellwether::shell::member::group_address;
use bellwether::shell::start::{self, Started};
use bellwether::shell::{
    Board, Door, Mailbox, Member, ResetCause, Sharing, TurnedAway, WORDS, log,
};
use bellwether::state::{StateVector, Summary};
use bellwether::time::{Duration, Instant};
use bellwether::wire::Destination;
use cortex_m::peripheral::Peripherals;
use defmt::{Str, intern};
use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_net::udp::{PacketMetadata, UdpSocket};
use embassy_net::{IpAddress, Ipv4Address, Ipv4Cidr, Runner, StackResources, StaticConfigV4};
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex as Raw;
use embassy_sync::channel::Channel;
use embassy_sync::signal::Signal;
use embassy_time::Timer;
use static_cell::StaticCell;

use crate::ethernet::Ethernet;
use crate::flash::{Flash, SECTOR_BYTES, TIMES};
use crate::registers::timer::{self, COUNTS_PER_US};

const SECTORS: u32 = 4;
const LAYOUT: Layout =
    Layout { a: 0..SECTORS * SECTOR_BYTES, b: SECTORS * SECTOR_BYTES..2 * SECTORS * SECTOR_BYTES };
type Store = cells::Store<Flash, { SECTORS as usize }, 704>;

/// Ts: both copies of the longest state vector, behind an erase that has just begun. The margin is
/// for the tasks that run in between.
const TS_MIN: Duration = {
    let geometry = Geometry { word_bytes: 4, sector_bytes: SECTOR_BYTES, sectors: SECTORS };
    let part = Part {
        program_us_max: (TIMES.program.as_micros() + TIMES.settle.as_micros()) as u32,
        program_page_bytes: 256,
        erase_us_max: TIMES.erase.as_micros() as u32,
        suspend_us_max: None,
        read_us_per_kib: 1_200,
        endurance_erases: 100_000,
    };
    let largest = StateVector::<WORDS>::RECORD_BYTES_MAX as u32;
    Duration(part.save_us_max(&geometry, largest, 648, true) as u64 + 20_000)
};
/// Tp: 64 datagrams handled one after the other (0.1 ms each), behind one flash page that is being
/// read or written (0.4 ms).
const TP_MIN: Duration = Duration(7_000);

/// Set at build time, the image serves one network only; by default it serves the one that its flash
/// names.
const NETWORK: Option<u16> = match option_env!("BELLWETHER_NETWORK") {
    Some(number) => match u16::from_str_radix(number, 10) {
        Ok(number) => Some(number),
        Err(_) => panic!("BELLWETHER_NETWORK is not a number from 0 to 65535"),
    },
    None => None,
};

static REQUESTS: Channel<Raw, Request, 2> = Channel::new();
static ANSWERS: Channel<Raw, Answer, 2> = Channel::new();

/// Found by its name in the image.
#[unsafe(no_mangle)]
static BELLWETHER_MAILBOX: Mailbox = Mailbox::EMPTY;

unsafe extern "C" {
    static _thread_stack_start: u32;
}

/// Moves the thread to its own stack and goes on there; interrupts keep the one of the start-up.
#[cortex_m_rt::entry]
fn enter() -> ! {
    // SAFETY: the symbol is the end of a region that the memory map gives to this stack alone;
    // nothing of this frame is used after the switch.
    unsafe {
        core::arch::asm!(
            "msr psp, {stack}",
            "movs r0, #2",
            "msr control, r0",
            "isb",
            "b {thread}",
            stack = in(reg) &raw const _thread_stack_start,
            thread = sym thread,
            options(noreturn)
        )
    }
}

extern "C" fn thread() -> ! {
    // The timers go on through a reset.
    timer::ALARM.stop();
    timer::DEADLINE.stop();
    let (cause, streak, record) = retained::take();
    if let Some(mut core) = Peripherals::take() {
        clock::start(&mut core.SYST);
        interrupts::enable(&mut core.NVIC, &mut core.SCB);
    }
    log::start(cause);
    if let Some(record) = record {
        log::last(record.what(), record.place(), record.line(), record.state());
    }
    executor::run(|spawner| {
        if let Ok(task) = main(spawner, cause, streak) {
            spawner.spawn(task);
        }
    })
}

/// So many resets in a row cost nothing; each further one doubles the pause before the node starts.
const RESETS_FREE: u8 = 4;
const RESET_PAUSE_MS: u64 = 250;
/// A node that has run for this long has left its resets behind.
const RESETS_FORGOTTEN: embassy_time::Instant = embassy_time::Instant::from_secs(10);

/// What the store task found out, or why the node must stay mute.
static STARTED: Signal<Raw, Result<Started, Str>> = Signal::new();

#[embassy_executor::task]
async fn main(spawner: Spawner, cause: ResetCause, streak: u8) {
    // Resets are rationed: whoever can provoke them must not have the node greet without end.
    if let Some(more) = streak.checked_sub(RESETS_FREE) {
        Timer::after_millis(RESET_PAUSE_MS << more.min(5)).await;
    }
    if let Err(reason) = bring_up(spawner, cause).await {
        log::mute(reason);
    }
}

async fn bring_up(spawner: Spawner, cause: ResetCause) -> Result<(), Str> {
    static NODE: StaticCell<Node<WORDS>> = StaticCell::new();
    let no_room = |_| intern!("no-task");
    spawner.spawn(store_task().map_err(no_room)?);
    let Started { provision, keys, epoch } = STARTED.wait().await?;
    let config = provision.config;
    if config.timing.tp < TP_MIN {
        return Err(intern!("tp-below-board"));
    }
    if config.timing.ts < TS_MIN {
        return Err(intern!("ts-below-board"));
    }
    let [a, b, c, d] = provision.address;
    let address = [0x02, 0x00, a ^ b, c, d, config.id.get()];
    let groups = [Destination::Node(config.id), Destination::All].map(|to| {
        let IpAddress::Ipv4(group) = group_address(config.network, to);
        ethernet::multicast(group.octets())
    });
    let (network, me, members) = (config.network, config.id, *config.members());
    let door = Door { address, groups, port: provision.port, network, me, members };
    // Nothing here draws numbers that others must not guess; distinct ports and ids are enough.
    let seed = u64::from(epoch) << 8 | u64::from(d);
    // No two boards come this far in the same microsecond of their clocks, not even with one image.
    let instance = (seed ^ embassy_time::Instant::now().as_micros()) as u32;
    let node = Node::new(config, keys, instance).map_err(|_| intern!("configuration-refused"))?;
    let node = NODE.init(node);

    static RESOURCES: StaticCell<StackResources<2>> = StaticCell::new();
    let address = Ipv4Cidr::new(Ipv4Address::new(a, b, c, d), 24);
    let static_config = StaticConfigV4 { address, gateway: None, dns_servers: Default::default() };
    let (stack, runner) = embassy_net::new(
        Ethernet::start(door),
        embassy_net::Config::ipv4_static(static_config),
        RESOURCES.init(StackResources::new()),
        seed,
    );

    static RX_SLOTS: StaticCell<[PacketMetadata; 32]> = StaticCell::new();
    static RX_BYTES: StaticCell<[u8; 2560]> = StaticCell::new();
    static TX_SLOTS: StaticCell<[PacketMetadata; 16]> = StaticCell::new();
    static TX_BYTES: StaticCell<[u8; 1024]> = StaticCell::new();
    static EFFECTS: StaticCell<Effects<WORDS>> = StaticCell::new();
    let socket = UdpSocket::new(
        stack,
        RX_SLOTS.init([PacketMetadata::EMPTY; 32]),
        RX_BYTES.init([0; 2560]),
        TX_SLOTS.init([PacketMetadata::EMPTY; 16]),
        TX_BYTES.init([0; 1024]),
    );
    let member = Member {
        node,
        effects: EFFECTS.init(Effects::default()),
        board: Sf2,
        application: Sharing::default(),
        stack,
        socket,
        port: provision.port,
        requests: REQUESTS.sender(),
        answers: ANSWERS.receiver(),
        mailbox: &BELLWETHER_MAILBOX,
    };
    spawner.spawn(net_task(runner).map_err(no_room)?);
    spawner.spawn(link_task().map_err(no_room)?);
    #[cfg(feature = "provoke")]
    spawner.spawn(provoke_task().map_err(no_room)?);
    spawner.spawn(member_task(member, cause, epoch).map_err(no_room)?);
    Ok(())
}

#[embassy_executor::task]
async fn net_task(mut runner: Runner<'static, Ethernet>) {
    runner.run().await
}

#[cfg(feature = "provoke")]
#[embassy_executor::task]
async fn provoke_task() {
    provoke::obey().await
}

#[embassy_executor::task]
async fn link_task() {
    ethernet::watch_link().await
}

#[embassy_executor::task]
async fn store_task() {
    if let Some(store) = open_store().await {
        cells::task::run(store, REQUESTS.receiver(), ANSWERS.sender()).await
    }
}

/// Not a part of the task itself: what is only needed at the start would take memory for ever.
async fn open_store() -> Option<&'static mut Store> {
    static STORE: StaticCell<Store> = StaticCell::new();
    match start::open(Flash::new(TIMES), &LAYOUT, NETWORK).await {
        Ok((store, started)) => {
            STARTED.signal(Ok(started));
            Some(STORE.init(store))
        }
        Err(reason) => {
            STARTED.signal(Err(reason));
            None
        }
    }
}

#[embassy_executor::task]
async fn member_task(
    member: Member<'static, Sf2, Sharing, Raw, 2, 2>,
    cause: ResetCause,
    epoch: u32,
) {
    member.run(cause, epoch).await
}

/// This board, as the shell sees it.
struct Sf2;

impl Board for Sf2 {
    fn feed(&mut self, span: Duration) {
        if embassy_time::Instant::now() > RESETS_FORGOTTEN {
            retained::forget_streak();
        }
        let counts = span.0.saturating_mul(COUNTS_PER_US);
        timer::DEADLINE.start(u32::try_from(counts).unwrap_or(u32::MAX));
    }

    fn reset(&mut self, cause: ResetCause) -> ! {
        retained::reset(cause)
    }

    fn arrived(&mut self, datagram: &[u8]) -> Option<Instant> {
        arrivals::of(datagram)
    }

    fn turned_away(&self) -> TurnedAway {
        ethernet::turned_away()
    }

    fn flash_counts(&self) -> (u32, u32) {
        flash::counts()
    }

    fn remember(&mut self, state: &Summary<WORDS>) {
        retained::remember(state);
    }
}
