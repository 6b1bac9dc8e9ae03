//! A flock file: who belongs to the flock, how it works, and its root keys.
//!
//! ```toml
//! network = "greenhouse"        # tells flocks on one wire apart
//! number = 4660                 # optional; derived from the name otherwise
//! algorithm = "bully"           # or "invitation", "ring"
//! board = "sf2"                 # all members are of this kind
//! port = 4711
//! tm_ms = 20                    # bounds as in a scenario file
//! tp_ms = 20
//! # ts_ms, t_ms, check_ms, quiet_ms; durability, accept_version_1
//! # detector, quiet_max_ms, preempt, hold_off_ms, observers: as in a scenario file
//! send = 1                      # the key that boards send with
//! keys = [{ id = 1, root = "64 hexadecimal digits" }]   # one, or two while the flock moves
//! made = [{ id = 1, incarnation = 1 }]     # kept by `cargo flock make`, also of members that are gone
//!
//! [[member]]
//! id = 1
//! preference = 0
//! address = "10.66.52.1"        # optional: 10.66, low byte of the number, id
//! incarnation = 1               # counted by `cargo flock make`
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use bellwether::cells::BootEpoch;
use bellwether::config::{Algorithm, Config, ConfigError, Detector, Durability, Timing};
use bellwether::id::NodeId;
use bellwether::key::{KEY_BYTES, Keys, LinkKey, Slot};
use bellwether::node::Node;
use bellwether::provision::Provision;
use bellwether::time::Duration;
use bellwether_scenario::toml_table::{Field, Source, Table};
use bellwether_scenario::{self as scenario, BadFile};
use crc::{CRC_16_IBM_SDLC, Crc};

use crate::board::{ALL as BOARDS, Board};
use crate::keys::RootKey;

/// The UDP port where a file names none.
pub const PORT: u16 = 4711;
/// The most members: what one word of a set holds.
pub const MEMBERS_MAX: u8 = 64;

const KEYS: [&str; 22] = [
    "network",
    "number",
    "algorithm",
    "board",
    "port",
    "tm_ms",
    "tp_ms",
    "ts_ms",
    "t_ms",
    "check_ms",
    "quiet_ms",
    "durability",
    "detector",
    "quiet_max_ms",
    "preempt",
    "hold_off_ms",
    "observers",
    "accept_version_1",
    "send",
    "keys",
    "made",
    "member",
];
const ROOT: &str = "64 hexadecimal digits";

/// A flock that was read and found consistent.
#[derive(Debug, Clone)]
pub struct Flock {
    pub name: String,
    pub network: u16,
    pub algorithm: Algorithm,
    pub durability: Durability,
    pub board: &'static Board,
    pub port: u16,
    pub timing: Timing,
    pub policies: Policies,
    pub accept_version_1: bool,
    /// One key, or two while the flock moves from one to the next.
    pub keys: Vec<Root>,
    /// The number of the key that boards send with.
    pub send: u8,
    /// The last incarnation of every id that an image was ever made for, also of former members.
    pub made: BTreeMap<NodeId, u32>,
    pub members: Vec<Member>,
}

/// How failures are noticed, and who may coordinate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policies {
    pub detector: Detector,
    pub quiet_max: Duration,
    pub preempt: bool,
    pub hold_off: Duration,
    pub observers: Vec<NodeId>,
}

/// A root key and its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    pub id: u8,
    pub key: RootKey,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub id: NodeId,
    pub preference: u8,
    pub address: Ipv4Addr,
    /// How often a board was provisioned under this id.
    pub incarnation: u32,
}

/// The number of a network that has only a name.
#[must_use]
pub fn number_of(name: &str) -> u16 {
    Crc::<u16>::new(&CRC_16_IBM_SDLC).checksum(name.as_bytes()).max(1)
}

impl Flock {
    /// Reads a flock file; `file_name` only serves the message of an error.
    pub fn parse(file_name: &str, text: &str) -> Result<Flock, BadFile> {
        let source = Source { file: file_name, text };
        let document = source.parse()?;
        parse_document(Table::document(source, &document))
    }

    /// What the board with this id is told; `None` if the flock has no such member.
    #[must_use]
    pub fn provision(&self, id: NodeId) -> Option<Provision<1>> {
        let member = self.member(id)?;
        let mut config = Config::new(id, self.algorithm, self.durability, self.timing);
        config.network = self.network;
        config.accept_version_1 = self.accept_version_1;
        config.detector = self.policies.detector;
        config.quiet_max = self.policies.quiet_max;
        config.preempt = self.policies.preempt;
        config.hold_off = self.policies.hold_off;
        config.observers = self.policies.observers.iter().copied().collect();
        for member in &self.members {
            config.add_member(member.id.get(), member.preference).ok()?;
        }
        Some(Provision { config, address: member.address.octets(), port: self.port, keyed: true })
    }

    /// The member with this id.
    #[must_use]
    pub fn member(&self, id: NodeId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    /// The link keys of the flock, as its boards hold them.
    pub fn link_keys(&self) -> Result<Keys, String> {
        let slot = |root: &Root| {
            let key = root.key.link_key(self.network, root.id)?;
            Ok::<_, String>(Slot { id: root.id, key })
        };
        let (mut send, mut other) = (None, None);
        for root in &self.keys {
            *(if root.id == self.send { &mut send } else { &mut other }) = Some(slot(root)?);
        }
        let send = send.ok_or_else(|| format!("the flock has no key {}", self.send))?;
        Ok(Keys { send, other })
    }
}

fn parse_document(document: Table<'_>) -> Result<Flock, BadFile> {
    document.allow_only(&KEYS)?;
    let name = document.need("network", "the name of the flock")?.text()?.to_owned();
    let network = match document.get("number") {
        Some(field) => field.whole(1, u16::MAX.into())? as u16,
        None => number_of(&name),
    };
    let algorithm =
        document.need("algorithm", "\"bully\", \"invitation\" or \"ring\"")?.one_of(&[
            (scenario::Algorithm::Bully.name(), Algorithm::Bully),
            (scenario::Algorithm::Invitation.name(), Algorithm::Invitation),
            (scenario::Algorithm::Ring.name(), Algorithm::Ring),
        ])?;
    let board = document.need("board", "the kind of the boards")?;
    let board = board.one_of(&BOARDS.each_ref().map(|board| (board.name, board)))?;
    let port = match document.get("port") {
        Some(field) => field.whole(1, u16::MAX.into())? as u16,
        None => PORT,
    };
    let durability = match document.get("durability") {
        Some(field) => field.one_of(&[
            (scenario::Durability::Group.name(), Durability::Group),
            (scenario::Durability::Strict.name(), Durability::Strict),
        ])?,
        None => Durability::Group,
    };
    let accept_version_1 = match document.get("accept_version_1") {
        Some(field) => field.flag()?,
        None => false,
    };
    let (keys, send) = parse_keys(document)?;
    let made = parse_made(document)?;
    let members = parse_members(document, network, &made)?;
    let timing = parse_timing(document, board, durability, members.len())?;
    let policies = parse_policies(document, &timing, &members)?;
    let flock = Flock {
        name,
        network,
        algorithm,
        durability,
        board,
        port,
        timing,
        policies,
        accept_version_1,
        keys,
        send,
        made,
        members,
    };
    check(document, &flock)?;
    Ok(flock)
}

fn parse_keys(document: Table<'_>) -> Result<(Vec<Root>, u8), BadFile> {
    let form = "a list of one or two tables { id, root }";
    let field = document.need("keys", form)?;
    let elements = field.list(form)?;
    if !(1..=2).contains(&elements.len()) {
        let wrong = format!("`keys` has {} entries", elements.len());
        return Err(field.bad(wrong, format!("allowed: {form}")));
    }
    let mut keys: Vec<Root> = Vec::new();
    for element in elements {
        let table = element.table(form)?;
        table.allow_only(&["id", "root"])?;
        let id_field = table.need("id", "the number of the key, 1 to 255")?;
        let id = id_field.whole(1, u8::MAX.into())? as u8;
        if keys.iter().any(|root| root.id == id) {
            return Err(id_field.bad(format!("key {id} stands twice"), "allowed: each id once"));
        }
        let root = table.need("root", ROOT)?;
        let key = RootKey::from_hex(root.secret(ROOT)?)
            .ok_or_else(|| root.bad("`root` is no key", format!("allowed: {ROOT}")))?;
        if keys.iter().any(|root| root.key == key) {
            return Err(root.bad("both keys are the same", "allowed: two different ones"));
        }
        keys.push(Root { id, key });
    }
    let ids: Vec<String> = keys.iter().map(|root| root.id.to_string()).collect();
    let allowed = format!("allowed: {}, as in `keys`", ids.join(" or "));
    let field = document.need("send", "the id of the key that boards send with")?;
    let send = field.whole(1, u8::MAX.into())? as u8;
    if !keys.iter().any(|root| root.id == send) {
        return Err(field.bad(format!("`send` is {send}"), allowed));
    }
    Ok((keys, send))
}

/// What `cargo flock make` has counted. It outlives the member, so that an id that is used again goes on
/// where it was.
fn parse_made(document: Table<'_>) -> Result<BTreeMap<NodeId, u32>, BadFile> {
    let form = "a list of tables { id, incarnation }";
    let mut made = BTreeMap::new();
    let Some(field) = document.get("made") else { return Ok(made) };
    for element in field.list(form)? {
        let table = element.table(form)?;
        table.allow_only(&["id", "incarnation"])?;
        let id_field = table.need("id", "a node id from 1 to 64")?;
        let number = id_field.id(MEMBERS_MAX)?;
        let count = table.need("incarnation", "how often an image was made for this id")?;
        let count = count.whole(0, BootEpoch::INCARNATION_MAX.into())? as u32;
        let twice = || id_field.bad(format!("id {number} stands twice"), "allowed: each id once");
        let id = NodeId::new(number).ok_or_else(twice)?;
        if made.insert(id, count).is_some() {
            return Err(twice());
        }
    }
    Ok(made)
}

fn parse_members(
    document: Table<'_>,
    network: u16,
    made: &BTreeMap<NodeId, u32>,
) -> Result<Vec<Member>, BadFile> {
    let form = "[[member]] tables with id, preference, address, incarnation";
    let field = document.need("member", form)?;
    let elements = field.list(form)?;
    let (mut members, mut addresses) = (Vec::<Member>::new(), BTreeSet::new());
    for element in elements {
        let table = element.table(form)?;
        table.allow_only(&["id", "preference", "address", "incarnation"])?;
        let id_field = table.need("id", "a node id from 1 to 64")?;
        let number = id_field.id(MEMBERS_MAX)?;
        let id = NodeId::new(number)
            .filter(|id| members.iter().all(|member| member.id != *id))
            .ok_or_else(|| {
                id_field.bad(format!("member {number} stands twice"), "allowed: each id once")
            })?;
        let whole = |key, max: u32| match table.get(key) {
            Some(field) => field.whole(0, max.into()).map(|number| number as u32),
            None => Ok(0),
        };
        let address = match table.get("address") {
            Some(field) => parse_address(field)?,
            None => Ipv4Addr::new(10, 66, network.to_le_bytes()[0], number),
        };
        let field = table.get("address").unwrap_or(id_field);
        if !addresses.insert(address) {
            let wrong = format!("address {address} stands twice");
            return Err(field.bad(wrong, "allowed: each address once"));
        }
        let net = |address: Ipv4Addr| address.octets().first_chunk::<3>().copied();
        if members.first().is_some_and(|first| net(first.address) != net(address)) {
            let wrong = format!("address {address} is in another network than the others");
            return Err(field.bad(wrong, "allowed: addresses whose first three numbers agree"));
        }
        let counted = made.get(&id).copied().unwrap_or(0);
        let incarnation = match table.get("incarnation") {
            Some(field) => {
                let count = field.whole(0, BootEpoch::INCARNATION_MAX.into())? as u32;
                if count < counted {
                    let wrong = format!("`incarnation` of member {number} is {count}");
                    let allowed = format!(
                        "allowed: at least {counted}, as in `made`: a lower one would use nonces and \
                         group numbers twice"
                    );
                    return Err(field.bad(wrong, allowed));
                }
                count
            }
            None => counted,
        };
        let preference = whole("preference", u8::MAX.into())? as u8;
        members.push(Member { id, preference, address, incarnation });
    }
    if members.is_empty() {
        return Err(field.bad("`member` is an empty list", "allowed: 1 to 64 members"));
    }
    Ok(members)
}

fn parse_address(field: Field<'_>) -> Result<Ipv4Addr, BadFile> {
    let text = field.text()?;
    text.parse::<Ipv4Addr>()
        .ok()
        .filter(|address| {
            let [first, .., last] = address.octets();
            // 0 and 127 are for a host's own use; from 224 on there are groups, and what is reserved.
            !matches!(first, 0 | 127 | 224..) && !matches!(last, 0 | 255)
        })
        .ok_or_else(|| {
            field.bad(format!("`address` is {text:?}"), "allowed: an IPv4 address of a host")
        })
}

fn parse_timing(
    document: Table<'_>,
    board: &Board,
    durability: Durability,
    members: usize,
) -> Result<Timing, BadFile> {
    let optional_us = |key| document.get(key).map(|field| field.time_us_above_zero()).transpose();
    let at_least = |key, us: Option<u64>, least: u64, why: &str| match (document.get(key), us) {
        (Some(field), Some(us)) if us < least => Err(field.bad(
            format!("`{key}` is {} ms", us as f64 / 1000.0),
            format!("allowed: at least {why} = {} ms", least as f64 / 1000.0),
        )),
        _ => Ok(us),
    };
    let tm = document.need("tm_ms", "the bound Tm of message propagation")?.time_us_above_zero()?;
    let tp = document.need("tp_ms", "the bound Tp of handling a message")?.time_us_above_zero()?;
    at_least("tp_ms", Some(tp), board.tp_us_min, "the board's Tp")?;
    let ts = at_least("ts_ms", optional_us("ts_ms")?, board.ts_us_min(), "the board's Ts")?
        .unwrap_or(board.ts_us_min());
    let mut timing =
        Timing::derive(Duration::from_us(tm), Duration::from_us(tp), Duration::from_us(ts));
    if durability == Durability::Strict {
        timing = timing.strict(members);
    }
    if let Some(t) = at_least("t_ms", optional_us("t_ms")?, 2 * tm + tp, "2 Tm + Tp")? {
        // The file's T knows nothing of drift and tick.
        timing = timing.with_t(Duration::from_us(t).max(timing.t_min()));
    }
    let round = 2 * tm + tp;
    if let Some(check) = at_least("check_ms", optional_us("check_ms")?, round, "T")? {
        timing.check = Duration::from_us(check).max(timing.t);
    }
    let quiet = optional_us("quiet_ms")?;
    if let Some(quiet) = at_least("quiet_ms", quiet, tm + 1_000, "Tm and 1 ms")? {
        timing.quiet = Duration::from_us(quiet);
        timing.beat =
            timing.beat.min(Duration::from_us(quiet).minus(Duration::from_us(tm)).fraction(1, 2));
    }
    // Answers to one question are spread, so that the asker's buffers bear them.
    timing.answer_spacing =
        Duration::from_us((timing.tp.us() / 2 / members.max(1) as u64).min(300));
    Ok(timing)
}

fn parse_policies(
    document: Table<'_>,
    timing: &Timing,
    members: &[Member],
) -> Result<Policies, BadFile> {
    let optional = |key| document.get(key).map(|field| field.time_us_above_zero()).transpose();
    let detector = match document.get("detector") {
        Some(field) => field.one_of(&scenario::Detector::ALL.map(|known| {
            let detector = match known {
                scenario::Detector::Reliable => Detector::Reliable,
                scenario::Detector::Heartbeat => Detector::Heartbeat,
                scenario::Detector::Adaptive => Detector::Adaptive,
                scenario::Detector::Indirect => Detector::Indirect,
            };
            (known.name(), detector)
        }))?,
        None => Detector::default(),
    };
    let quiet_max = optional("quiet_max_ms")?.map_or(timing.quiet.times(4), Duration::from_us);
    let preempt = document.get("preempt").map_or(Ok(true), |field| field.flag())?;
    let hold_off = optional("hold_off_ms")?.map_or(Duration::ZERO, Duration::from_us);
    let mut observers = Vec::new();
    if let Some(field) = document.get("observers") {
        for number in field.ids(MEMBERS_MAX)? {
            let known = members.iter().map(|member| member.id).find(|id| id.get() == number);
            let allowed = "allowed: ids of members";
            observers.push(known.ok_or_else(|| {
                field.bad(format!("`observers` names node {number}, which is no member"), allowed)
            })?);
        }
    }
    Ok(Policies { detector, quiet_max, preempt, hold_off, observers })
}

/// The node's own check of its configuration has the last word, and the record must hold it.
fn check(document: Table<'_>, flock: &Flock) -> Result<(), BadFile> {
    let line = |key| document.get(key).map_or(document.line, |field| field.line);
    // Any will do: it is the configuration that is judged.
    let keys = Keys::one(1, LinkKey::new([0; KEY_BYTES]));
    for member in &flock.members {
        let Some(provision) = flock.provision(member.id) else { continue };
        let mut room = [0; bellwether::provision::BYTES_MAX];
        if provision.encode(&mut room).is_none() {
            let allowed = "allowed: spans of time below 71 minutes";
            return Err(document.bad("a span of time does not fit", allowed));
        }
        if let Err(error) = Node::new(provision.config, keys.clone(), 0) {
            let (key, allowed) = match error {
                ConfigError::QuietTooShort { .. } => ("quiet_ms", "other times"),
                ConfigError::QuietMaxTooShort { .. } => ("quiet_max_ms", "other times"),
                ConfigError::CheckTooShort { .. } => ("check_ms", "other times"),
                ConfigError::TTooShort { .. } => ("t_ms", "other times"),
                ConfigError::OnlyObservers => ("observers", "one member less, at least"),
                ConfigError::ReliableNeedsBully => ("detector", "another one"),
                _ => ("tm_ms", "other times"),
            };
            let allowed = format!("allowed: {allowed}");
            return Err(document.source.bad(line(key), error.to_string(), allowed));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
