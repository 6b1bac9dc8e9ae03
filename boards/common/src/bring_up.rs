//! From the first instruction to a node that takes part, in functions that a board's tasks call:
//! embassy tasks cannot be generic, these can. [`crate::board!`] writes the tasks.

use bellwether::application::Application;
use bellwether::cells::task::{Answer, Request};
use bellwether::cells::{self, Store};
use bellwether::key::KeyBox;
use bellwether::node::Node;
use bellwether::shell::member::group_address;
use bellwether::shell::start::{self, Started};
use bellwether::shell::{Board, Door, Mailbox, Member, ResetCause, TurnedAway, WORDS, log};
use bellwether::state::Summary;
use bellwether::time::{Duration, Instant};
use bellwether::wire::Destination;
use defmt::{Str, intern};
use embassy_executor::Spawner;
use embassy_net::udp::{PacketMetadata, UdpSocket};
use embassy_net::{IpAddress, Ipv4Address, Ipv4Cidr, Runner, StackResources, StaticConfigV4};
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex as Raw;
use embassy_sync::channel::Channel;
use embassy_sync::signal::Signal;
use embassy_time::Timer;
use static_cell::{ConstStaticCell, StaticCell};

use crate::{Guard, Hardware, arrivals, counts, retained, stack};

/// Room for the longest record of a cell.
pub const RECORD_BYTES: usize = 704;

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
/// Keys on their way from the cells to the node, and back.
static KEYS: KeyBox<Raw> = KeyBox::empty();

/// Found by its name in the image.
#[unsafe(no_mangle)]
pub(crate) static BELLWETHER_MAILBOX: Mailbox = Mailbox::EMPTY;

/// So many resets in a row cost nothing; each further one doubles the pause before the node starts.
const RESETS_FREE: u8 = 4;
const RESET_PAUSE_MS: u64 = 250;
/// A node that has run for this long has left its resets behind.
const RESETS_FORGOTTEN: embassy_time::Instant = embassy_time::Instant::from_secs(10);

/// What may pass before the member takes over the guard: a pause between resets, or cells that are put
/// in order with the longest erases.
const STARTING: Duration = Duration::from_millis(30_000);

/// What the store task found out, or why the node must stay mute.
static STARTED: Signal<Raw, Result<&'static mut Option<Started>, Str>> = Signal::new();

/// Why this boot came about, and how often in a row it was the node itself.
#[derive(Clone, Copy)]
pub struct Boot {
    pub cause: ResetCause,
    pub streak: u8,
}

/// The member of a board, which works on the task `A`.
pub type Fellow<H, A> = Member<'static, Watched<<H as Hardware>::Guard>, A, Raw, 2, 2>;

/// Takes the chip into use and says why it started. Call once, first thing.
pub fn begin<H: Hardware>() -> (Boot, H, H::Flash, H::Guard) {
    let (cause, streak, record) = retained::take(H::reset_cause());
    let (hardware, flash, mut guard) = H::start();
    guard.feed(STARTING);
    log::start(cause);
    if let Some(record) = record {
        log::last(record.what(), record.place(), record.line(), record.state());
    }
    (Boot { cause, streak }, hardware, flash, guard)
}

/// Resets are rationed: whoever can provoke them must not have the node greet without end.
///
/// Cancel safety: waits only.
pub async fn ration(boot: Boot) {
    if let Some(more) = boot.streak.checked_sub(RESETS_FREE) {
        Timer::after_millis(RESET_PAUSE_MS << more.min(5)).await;
    }
}

/// Opens the cells and tells the other tasks what they hold. Not a part of the task that keeps them:
/// what is only needed at the start would take memory for ever.
///
/// Cancel safety: not cancel safe; it saves.
pub async fn open_store<H: Hardware, const SECTORS: usize>(
    room: &'static StaticCell<Store<H::Flash, SECTORS, RECORD_BYTES>>,
    flash: H::Flash,
) -> Option<&'static mut Store<H::Flash, SECTORS, RECORD_BYTES>> {
    let store = match Store::new(flash, &H::LAYOUT) {
        Ok(store) => room.init(store),
        Err(error) => {
            STARTED.signal(Err(log::reason_name(error.reason)));
            return None;
        }
    };
    // A place of its own: in the signal, the image would hold a copy of it.
    static FOUND: StaticCell<Option<Started>> = StaticCell::new();
    let started = start::open(store, NETWORK, &KEYS).await;
    let opened = started.is_ok();
    STARTED.signal(started.map(|started| FOUND.init(Some(started))));
    opened.then_some(store)
}

/// Keeps the cells.
///
/// Cancel safety: not cancel safe; give it a task of its own.
pub async fn keep<H: Hardware, const SECTORS: usize>(
    store: &'static mut Store<H::Flash, SECTORS, RECORD_BYTES>,
) {
    cells::task::run(store, REQUESTS.receiver(), ANSWERS.sender(), &KEYS).await
}

/// The multicast hardware address of an IPv4 group (RFC 1112).
fn multicast([_, b, c, d]: [u8; 4]) -> [u8; 6] {
    [0x01, 0x00, 0x5e, b & 0x7f, c, d]
}

/// What is known of a node before it has a network.
struct Plan {
    door: Door,
    node: &'static mut Node<WORDS>,
    address: Ipv4Address,
    seed: u64,
    epoch: u32,
}

/// A function of its own, as [`fellow`] is: what lives only here takes no room in a task.
#[inline(never)]
fn plan<H: Hardware>(started: &mut Option<Started>, hardware: &mut H) -> Result<Plan, Str> {
    static NODE: StaticCell<Node<WORDS>> = StaticCell::new();
    // It is there: who signals puts it there.
    let Started { provision, epoch } = started.take().ok_or(intern!("unreadable"))?;
    let keys = KEYS.take().ok_or(intern!("keys-missing"))?;
    let config = provision.config;
    if config.timing.tp < H::TP_MIN {
        return Err(intern!("tp-below-board"));
    }
    if config.timing.ts < H::TS_MIN {
        return Err(intern!("ts-below-board"));
    }
    let [a, b, c, d] = provision.address;
    let own = hardware.address();
    let address = own.unwrap_or([0x02, 0x00, a ^ b, c, d, config.id.get()]);
    let groups = [Destination::Node(config.id), Destination::All].map(|to| {
        let IpAddress::Ipv4(group) = group_address(config.network, to);
        multicast(group.octets())
    });
    let (network, me, members) = (config.network, config.id, *config.members());
    let door = Door { address, groups, port: provision.port, network, me, members };
    // Nothing here draws numbers that others must not guess; distinct ports and ids are enough.
    let seed = u64::from(epoch) << 8 | u64::from(d);
    let seed = seed ^ hardware.random().unwrap_or(0);
    // Where the chip has no random numbers, two boards with one image differ by the microsecond in which
    // they come this far: likely, not certain. With the same one they would not know each other for two.
    let instance = (seed ^ embassy_time::Instant::now().as_micros()) as u32;
    let config = config.validated().map_err(|_| intern!("configuration-refused"))?;
    let node = NODE.init_with(|| Node::of(config, keys, instance));
    Ok(Plan { door, node, address: Ipv4Address::new(a, b, c, d), seed, epoch })
}

/// What the network and the member work in. All zero, so that neither the image nor the stack holds a
/// copy.
struct Room {
    resources: StackResources<2>,
    received: [u8; 2560],
    sent: [u8; 1024],
}

/// What is not zero when it is empty.
struct Slots {
    received: [PacketMetadata; 32],
    sent: [PacketMetadata; 16],
}

/// The node with its network.
#[inline(never)]
fn fellow<H: Hardware, A: Application<WORDS> + Default>(
    (node, address, seed, port): (&'static mut Node<WORDS>, Ipv4Address, u64, u16),
    ethernet: H::Ethernet,
    guard: H::Guard,
) -> (Runner<'static, H::Ethernet>, Fellow<H, A>) {
    static ROOM: ConstStaticCell<Room> = ConstStaticCell::new(Room {
        resources: StackResources::new(),
        received: [0; 2560],
        sent: [0; 1024],
    });
    static SLOTS: StaticCell<Slots> = StaticCell::new();
    let room = ROOM.take();
    let slots = SLOTS.init_with(|| Slots {
        received: [PacketMetadata::EMPTY; 32],
        sent: [PacketMetadata::EMPTY; 16],
    });
    let address = Ipv4Cidr::new(address, 24);
    let static_config = StaticConfigV4 { address, gateway: None, dns_servers: Default::default() };
    let (stack, runner) = embassy_net::new(
        ethernet,
        embassy_net::Config::ipv4_static(static_config),
        &mut room.resources,
        seed,
    );
    let socket = UdpSocket::new(
        stack,
        &mut slots.received,
        &mut room.received,
        &mut slots.sent,
        &mut room.sent,
    );
    let member = Member {
        node,
        board: Watched(guard),
        application: A::default(),
        stack,
        socket,
        port,
        requests: REQUESTS.sender(),
        answers: ANSWERS.receiver(),
        mailbox: &BELLWETHER_MAILBOX,
        keys: &KEYS,
    };
    (runner, member)
}

/// Keeps the guard quiet for ever, on a board that takes no part.
///
/// Cancel safety: the guard resets the board, some time later.
pub async fn idle<G: Guard>(mut guard: G) -> ! {
    loop {
        guard.feed(STARTING);
        Timer::after_secs(5).await;
    }
}

/// The node, its network and the epoch of this boot, as soon as the cells are open. A node that must
/// stay mute says why, and does.
///
/// Cancel safety: not cancel safe; what it has set up can be set up once only.
pub async fn join<H: Hardware, A: Application<WORDS> + Default>(
    spawner: Spawner,
    mut hardware: H,
    mut guard: H::Guard,
) -> Result<(Runner<'static, H::Ethernet>, Fellow<H, A>, u32), Str> {
    guard.feed(STARTING);
    let started = STARTED.wait().await;
    let planned = started.and_then(|started| plan(started, &mut hardware));
    let Plan { door, node, address, seed, epoch } = match planned {
        Ok(planned) => planned,
        Err(reason) => {
            log::mute(reason);
            idle(guard).await
        }
    };
    let port = door.port;
    #[cfg(feature = "provoke")]
    spawner.spawn(crate::provoke::obey().map_err(no_room)?);
    let ethernet = hardware.connect(spawner, door).await;
    let (runner, member) = fellow::<H, A>((node, address, seed, port), ethernet, guard);
    Ok((runner, member, epoch))
}

/// The reason for which a node stays mute whose task could not be spawned.
pub fn no_room<E>(_: E) -> Str {
    intern!("no-task")
}

/// A board, as the shell sees it.
pub struct Watched<G>(G);

impl<G: Guard> Board for Watched<G> {
    fn feed(&mut self, span: Duration) {
        if embassy_time::Instant::now() > RESETS_FORGOTTEN {
            retained::forget_streak();
        }
        self.0.feed(span);
    }

    fn reset(&mut self, cause: ResetCause) -> ! {
        retained::reset(cause)
    }

    fn arrived(&mut self, datagram: &[u8]) -> Option<Instant> {
        arrivals::of(datagram)
    }

    fn turned_away(&self) -> TurnedAway {
        counts::turned_away()
    }

    fn flash_counts(&self) -> (u32, u32) {
        (counts::PROGRAMS.get(), counts::ERASES.get())
    }

    fn forget(&mut self) {
        stack::wipe_when_idle();
    }

    fn remember(&mut self, state: &Summary<WORDS>) {
        retained::remember(state);
        self.0.show(state);
    }
}
