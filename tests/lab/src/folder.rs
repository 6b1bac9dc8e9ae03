//! The folder of a run: flash files and sockets, gone when the run is.

use std::io;
use std::path::Path;

use tempfile::{Builder, TempDir};

/// A flash in memory: a host whose disk is busy would stall the board that writes.
const MEMORY: &str = "/dev/shm";
const PREFIX: &str = "bellwether-";

/// A new folder, named after this process.
pub fn create() -> io::Result<TempDir> {
    let memory = Path::new(MEMORY);
    sweep(memory);
    let prefix = format!("{PREFIX}{}-", std::process::id());
    let mut builder = Builder::new();
    builder.prefix(&prefix);
    builder.tempdir_in(memory).or_else(|_| builder.tempdir())
}

/// Removes what labs have left behind that were killed before they could.
fn sweep(memory: &Path) {
    for entry in std::fs::read_dir(memory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        let dead = |id: u32| !Path::new("/proc").join(id.to_string()).exists();
        if owner.and_then(|id| id.parse().ok()).is_some_and(dead) {
            // Somebody else's, or gone already: then it is not ours to remove.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_folders_of_dead_labs_are_swept_away() {
        let memory = tempfile::tempdir().unwrap();
        let living = memory.path().join(format!("{PREFIX}{}-x", std::process::id()));
        // No process has the highest number that fits.
        let dead = memory.path().join(format!("{PREFIX}{}-x", u32::MAX));
        let stranger = memory.path().join("bellwether-notes");
        for path in [&living, &dead, &stranger] {
            std::fs::create_dir(path).unwrap();
        }
        sweep(memory.path());
        assert!(living.exists() && stranger.exists() && !dead.exists());
    }
}
