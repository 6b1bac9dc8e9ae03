//! Changes of a flock file that keep its comments: incarnations and keys.

use std::path::Path;

use bellwether::cells::BootEpoch;
use bellwether::id::NodeId;
use toml_edit::{DocumentMut, InlineTable, Item, TableLike, Value};

use crate::file::{Flock, Root};
use crate::keys::RootKey;
use crate::save;

/// A flock file that was read and can be changed.
#[derive(Debug)]
pub struct Edit {
    file_name: String,
    document: DocumentMut,
    pub flock: Flock,
}

/// What `rotate` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotation {
    /// A new key beside the one in use.
    Add,
    /// Send with the new key.
    Switch,
    /// Forget the old key.
    DropOld,
}

/// The key that was added last; files keep them in that order.
fn newest(flock: &Flock) -> Result<&Root, String> {
    flock.keys.last().ok_or_else(|| "the flock has no key".into())
}

/// Changes a number and keeps the comment behind it.
fn set(table: &mut dyn TableLike, key: &str, number: i64) {
    let mut value = Value::from(number);
    if let Some(old) = table.get(key).and_then(Item::as_value) {
        *value.decor_mut() = old.decor().clone();
    }
    table.insert(key, Item::Value(value));
}

impl Edit {
    pub fn parse(file_name: &str, text: &str) -> Result<Self, String> {
        let flock = Flock::parse(file_name, text).map_err(|error| error.to_string())?;
        let document = text.parse::<DocumentMut>().map_err(|error| error.to_string())?;
        Ok(Self { file_name: file_name.to_owned(), document, flock })
    }

    /// Writes the file. What was changed is read again first: a file that this program cannot read
    /// is never left behind.
    pub fn save(&self, path: &Path) -> Result<(), String> {
        let text = self.document.to_string();
        Flock::parse(&self.file_name, &text).map_err(|error| error.to_string())?;
        save::replace(path, text.as_bytes())
    }

    #[must_use]
    pub fn text(&self) -> String {
        self.document.to_string()
    }

    /// The next incarnation of a member.
    pub fn count_incarnation(&mut self, id: NodeId) -> Result<u32, String> {
        let index = self.flock.members.iter().position(|member| member.id == id);
        let index = index.ok_or_else(|| {
            let ids: Vec<String> =
                self.flock.members.iter().map(|member| member.id.to_string()).collect();
            format!("there is no member {id}; allowed: {}", ids.join(", "))
        })?;
        let next = self.flock.members[index].incarnation + 1;
        if next > BootEpoch::INCARNATION_MAX {
            return Err(format!(
                "member {id} was made {} times, and there are no boot epochs left for it; give the \
                 board another id",
                next - 1
            ));
        }
        let member = self.member(index).ok_or("the members of the file cannot be changed")?;
        set(member, "incarnation", next.into());
        self.flock.members[index].incarnation = next;
        self.write_made();
        Ok(next)
    }

    /// Keeps the counts where they survive the member: whoever deletes a member and adds it again goes
    /// on where it was.
    fn write_made(&mut self) {
        for member in &self.flock.members {
            self.flock.made.insert(member.id, member.incarnation);
        }
        let mut list = toml_edit::Array::new();
        for (id, incarnation) in &self.flock.made {
            let mut entry = InlineTable::new();
            entry.insert("id", i64::from(id.get()).into());
            entry.insert("incarnation", i64::from(*incarnation).into());
            list.push(entry);
        }
        self.document.insert("made", Item::Value(list.into()));
    }

    fn member(&mut self, index: usize) -> Option<&mut dyn TableLike> {
        match self.document.get_mut("member")? {
            Item::ArrayOfTables(tables) => {
                tables.get_mut(index).map(|table| table as &mut dyn TableLike)
            }
            Item::Value(Value::Array(list)) => {
                list.get_mut(index)?.as_inline_table_mut().map(|table| table as &mut dyn TableLike)
            }
            _ => None,
        }
    }

    /// One step of the move from one key to the next. Says what to do then.
    pub fn rotate(&mut self, step: Rotation) -> Result<String, String> {
        let file = self.file_name.clone();
        let newest = newest(&self.flock)?.id;
        let (send, count) = (self.flock.send, self.flock.keys.len());
        match step {
            Rotation::Add if count == 2 => Err(format!(
                "the flock has two keys already; next: {}",
                if send == newest { "rotate --drop-old" } else { "rotate --switch" }
            )),
            Rotation::Add => {
                let id = newest.checked_add(1).unwrap_or(1);
                let root = RootKey::random()?;
                let mut entry = InlineTable::new();
                entry.insert("id", i64::from(id).into());
                entry.insert("root", root.to_hex().as_str().into());
                self.keys()?.push(entry);
                Ok(format!(
                    "key {id} was added; boards still send with key {send}.\n\
                     next: give all boards both keys, then `cargo flock rotate {file} --switch`"
                ))
            }
            Rotation::Switch if count != 2 || send == newest => Err(format!(
                "there is no newer key than key {send}, which is sent with; `cargo flock rotate \
                 {file}` adds one"
            )),
            Rotation::Switch => {
                set(self.document.as_table_mut(), "send", newest.into());
                Ok(format!(
                    "boards shall send with key {newest}; key {send} is still accepted.\n\
                     next: give all boards this order of keys, then `cargo flock rotate {file} \
                     --drop-old`"
                ))
            }
            Rotation::DropOld if count != 2 => {
                Err(format!("key {send} is the only key; there is no old one"))
            }
            Rotation::DropOld if send != newest => Err(format!(
                "boards still send with key {send}, the old one; first `cargo flock rotate {file} \
                 --switch`"
            )),
            Rotation::DropOld => {
                self.keys()?.remove(0);
                Ok(format!(
                    "only key {send} is left.\nnext: give all boards this key alone; they wipe the \
                     old one from their flash"
                ))
            }
        }
    }

    fn keys(&mut self) -> Result<&mut toml_edit::Array, String> {
        let keys = self.document.get_mut("keys").and_then(Item::as_array_mut);
        keys.ok_or_else(|| "`keys` must be a list in brackets: keys = [{ id, root }]".into())
    }
}
