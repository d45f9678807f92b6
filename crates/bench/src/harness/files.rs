//! Files of a row: made once, in a folder of their own that goes with the row.

use multigrain::prelude::ElementType;
use multigrain::rooms::store::npy;
use multigrain::{Abort, Error, generate, readable_bytes};
use multigrain_console::Failure;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Bytes that are made and written at once.
const CHUNK_BYTES: u64 = 4 << 20;
/// The header of a file that NumPy writes is this long for all but the longest shapes.
const NUMPY_HEADER_BYTES: usize = 128;
/// What must stay free besides the files.
const SPARE_BYTES: u64 = 64 << 20;

/// A folder that is removed with all that lies in it.
pub(crate) struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// A new folder in `directory`, which has room for `bytes`.
    pub(crate) fn new(directory: &Path, bytes: u64) -> Result<Scratch, Failure> {
        let name = directory.display();
        let refuse = |why: String| Failure::Request(format!("--directory {name}: {why}"));
        let space = rustix::fs::statvfs(directory).map_err(|e| refuse(e.to_string()))?;
        let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
        if free_bytes < bytes + SPARE_BYTES {
            let (need, free) = (readable_bytes(bytes + SPARE_BYTES), readable_bytes(free_bytes));
            return Err(refuse(format!("the files of this row need {need}, there are {free} free; name another one")));
        }
        // Absolute: peers are given the names, too.
        let directory = directory.canonicalize().map_err(|e| refuse(e.to_string()))?;
        let folder = directory.join(format!("multigrain-bench-{}", std::process::id()));
        std::fs::create_dir(&folder).map_err(|e| refuse(format!("cannot create {}: {e}", folder.display())))?;
        Ok(Scratch { folder })
    }

    /// The name of a file in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes a .npy file of generated float32 as NumPy writes it, and waits until it is on the disk.
    pub(crate) fn npy(&self, name: &str, shape: &[u64], seed: u64, abort: &Abort) -> Result<PathBuf, Failure> {
        self.npy_of(ElementType::F32, name, shape, seed, abort)
    }

    /// The same with other elements.
    pub(crate) fn npy_of(
        &self,
        element: ElementType,
        name: &str,
        shape: &[u64],
        seed: u64,
        abort: &Abort,
    ) -> Result<PathBuf, Failure> {
        super::rounds::status(&format!("writing {name}"));
        let path = self.path(name);
        let refuse = |why: String| Failure::Run(format!("cannot write {}: {why}", path.display()));
        let failed = |e: std::io::Error| refuse(e.to_string());
        let mut file = File::create_new(&path).map_err(failed)?;
        file.write_all(&numpy_header(element, shape).map_err(refuse)?).map_err(failed)?;
        let elements: u64 = shape.iter().product();
        let mut chunk = vec![0; CHUNK_BYTES as usize];
        let mut first = 0;
        while first < elements {
            if abort.is_raised() {
                return Err(Error::Interrupted { resume: false }.into());
            }
            let count = (elements - first).min(CHUNK_BYTES / element.size_bytes());
            let bytes = &mut chunk[..(element.size_bytes() * count) as usize];
            generate::fill(element, seed, first, bytes);
            file.write_all(bytes).map_err(failed)?;
            first += count;
        }
        file.sync_all().map_err(failed)?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The header without the padding to a page that our own files have.
fn numpy_header(element: ElementType, shape: &[u64]) -> Result<Vec<u8>, String> {
    let mut header = npy::write(element, shape).map_err(|e| e.to_string())?;
    let text = header.iter().rposition(|&b| b == b'}').map_or(header.len(), |at| at + 1);
    let total = (text + 1).next_multiple_of(NUMPY_HEADER_BYTES);
    header.truncate(text);
    header.resize(total - 1, b' ');
    header.push(b'\n');
    // Magic and version take 8 bytes, the length itself 2.
    header[8..10].copy_from_slice(&((total - 10) as u16).to_le_bytes());
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_short_and_say_the_shape() {
        let header = numpy_header(ElementType::F32, &[8192, 4096]).unwrap();
        assert_eq!(header.len(), NUMPY_HEADER_BYTES);
        let read = npy::parse(&[header, vec![0; 4 * 8192 * 4096]].concat()).unwrap();
        assert_eq!((&read.shape[..], read.data_offset_bytes), (&[8192, 4096][..], 128));
    }

    #[test]
    fn the_folder_goes_with_its_files() {
        let directory = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(directory.path(), 1 << 20).unwrap();
        let file = scratch.npy("x.npy", &[1000], 3, &Abort::new()).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().len(), 128 + 4000);
        drop(scratch);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn too_little_room_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(Scratch::new(directory.path(), u64::MAX / 2), Err(Failure::Request(_))));
    }
}
