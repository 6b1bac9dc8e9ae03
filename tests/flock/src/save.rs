//! Files that hold keys: nobody else may read them, and a crash leaves the old one or the new one.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Creates a file that only its owner can read. A file that exists is not touched.
pub fn create(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)
}

/// Puts a new content in the place of a file, or creates it: first beside it, then by renaming.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let beside = Path::new(&name);
    // Left by a crash: it was never in force.
    match fs::remove_file(beside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    create(beside, bytes)?;
    fs::rename(beside, path).map_err(failed)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = File::open(folder.unwrap_or(Path::new("."))).map_err(failed)?;
    folder.sync_all().map_err(failed)
}

/// Keeps other runs of this program from changing the file, or any other in its folder, until the lock is
/// dropped. The folder is what is locked: the file itself is replaced.
pub fn lock(path: &Path) -> Result<File, String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let lock = File::open(folder).map_err(failed)?;
    lock.lock().map_err(failed)?;
    Ok(lock)
}

/// What is wrong with the permissions of a file that holds keys.
#[must_use]
pub fn warning(path: &Path) -> Option<String> {
    let mode = fs::metadata(path).ok()?.permissions().mode();
    (mode & 0o077 != 0).then(|| {
        let path = path.display();
        format!("warning: others can read the keys in {path}: run `chmod 600 {path}`")
    })
}
