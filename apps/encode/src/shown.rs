//! The pictures as players show them, written beside the stream for whoever wants to compare: what a decoder has to make of it, and
//! how near it is to the source.

use crate::error::Error;
use crate::picture::Size;
use crate::source::Source;
use multigrain::whole::WholeFile;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A file of pictures in the order in which they are shown: 4:2:0 samples, planes one after the other.
pub struct Shown {
    file: WholeFile,
    name: String,
    size: Size,
    /// Of differences of samples from their source.
    squares: u64,
    samples: u64,
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "pictures to {}", self.name)
    }
}

impl Shown {
    /// A file that appears under its name when it is finished.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(path: &Path, size: Size) -> Result<Shown, Error> {
        let name = path.display().to_string();
        let file = WholeFile::create(path).map_err(|source| Error::Write { name: name.clone(), source })?;
        Ok(Shown { file, name, size, squares: 0, samples: 0 })
    }

    /// Takes a picture, which is so many behind the first, and what it was made of.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&mut self, number: u64, picture: &[u8], source: &Source) -> Result<(), Error> {
        let written = self.file.file().write_all_at(picture, number * self.size.bytes() as u64);
        written.map_err(|source| Error::Write { name: self.name.clone(), source })?;
        self.squares += squares(self.size, picture, source);
        self.samples += self.size.bytes() as u64;
        Ok(())
    }

    /// Signal over noise of all samples so far, in decibels; infinite where each is as it was.
    pub fn psnr(&self) -> f64 {
        10.0 * (255.0 * 255.0 * self.samples as f64 / self.squares as f64).log10()
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(self) -> Result<(), Error> {
        let name = self.name;
        self.file.publish().map_err(|source| Error::Write { name, source })
    }
}

/// Squares of all differences, summed.
fn squares(size: Size, picture: &[u8], source: &Source) -> u64 {
    let (luma, chroma) = picture.split_at(size.width * size.height);
    let (cb, cr) = chroma.split_at(chroma.len() / 2);
    let (width, columns) = (size.width / 2, size.columns());
    let plane = |plane: &[u8], width: usize, side: usize, sample: &dyn Fn(usize, usize, usize) -> u8| -> u64 {
        let row = |(y, row): (usize, &[u8])| -> u64 {
            let of = |(x, found): (usize, &u8)| {
                let block = y / side * columns + x / side;
                u64::from(found.abs_diff(sample(block, x % side, y % side))).pow(2)
            };
            row.iter().enumerate().map(of).sum()
        };
        plane.chunks(width).enumerate().map(row).sum()
    };
    let blocks = &source.blocks;
    plane(luma, size.width, 16, &|block, x, y| blocks[block].luma.0[16 * y + x])
        + plane(cb, width, 8, &|block, x, y| blocks[block].chroma.0[16 * y + x])
        + plane(cr, width, 8, &|block, x, y| blocks[block].chroma.0[16 * y + 8 + x])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_each_plane_count() {
        let size = Size { width: 18, height: 20 };
        let bytes: Vec<u8> = (0..size.bytes()).map(|at| (at * 7 % 200) as u8).collect();
        let mut source = Source::default();
        source.fill(size, &bytes);
        assert_eq!(squares(size, &bytes, &source), 0);
        // The corners of each plane.
        for (begin, width, height) in [(0, 18, 20), (360, 9, 10), (450, 9, 10)] {
            for at in [begin, begin + width - 1, begin + width * (height - 1), begin + width * height - 1] {
                let mut other = bytes.clone();
                other[at] += 3;
                assert_eq!(squares(size, &other, &source), 9, "{at}");
            }
        }
    }
}
