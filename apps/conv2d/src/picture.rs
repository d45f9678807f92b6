//! Pictures in PNG files: planes of `f32` in, planes of `f32` out.
//!
//! A file with 1 to 16 bits a sample, gray or colour, with or without alpha or a palette, becomes
//! one plane (gray) or three (red, green, blue) with samples from 0 to 1, and one more for alpha
//! if the file has any; the sample `s` of `b` bits becomes `s / (2^b - 1)`. Sample values are taken
//! as they are: a gamma or a colour profile in the file is neither applied nor kept.
//!
//! Files are written with 8 bits a sample: below 0 and NaN become 0, above 1 becomes 255, and what
//! is between becomes `255 * value` rounded to the nearest whole number, halves upwards. A file
//! appears whole under its name or not at all.

use crate::chunks::Chunks;
use multigrain::whole::{self, WholeFile};
use png::{BitDepth, ColorType, Decoder, Encoder, Limits, Transformations};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Samples (elements of all planes together) that a picture may have unless asked otherwise; they
/// take 4 bytes each.
pub const SAMPLES_MAX: usize = 1 << 29;

/// A picture that could not be read or written; every message names the file.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason given.
        source: std::io::Error,
    },
    /// Not a PNG file, or a damaged one.
    #[error("{} is not a whole PNG file: {reason}; give a PNG file or convert it to one", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file's header announces more than the caller allows.
    #[error(
        "{} is a picture of {rows} x {cols} with {planes} planes: at most {samples_max} samples \
         are read", path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Rows.
        rows: usize,
        /// Columns.
        cols: usize,
        /// Planes, with alpha.
        planes: usize,
        /// Samples allowed.
        samples_max: usize,
    },
    /// The planes to write are not those of a picture.
    #[error(
        "cannot write {}: a picture of {rows} x {cols} needs 1 plane (gray) or 3 (red, green, \
         blue) of rows * cols samples, between 1 and 2147483647 rows and columns; {found}", path.display()
    )]
    Planes {
        /// The file.
        path: PathBuf,
        /// Rows.
        rows: usize,
        /// Columns.
        cols: usize,
        /// What was given.
        found: String,
    },
}

/// A picture in a file, by rows, so that no more than some of them are in memory. Of an interlaced picture, whose rows do
/// not follow each other, all samples are, as they are in the file.
pub struct Reading {
    path: PathBuf,
    reader: png::Reader<Chunks<BufReader<File>>>,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Planes without opacity: one or three.
    pub planes: usize,
    /// Whether there is opacity too.
    pub alpha: bool,
    deep: bool,
}

/// A picture in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// One plane (gray) or three (red, green, blue), each row by row without gaps.
    pub planes: Vec<Vec<f32>>,
    /// Opacity, if the file has it; 1 is opaque.
    pub alpha: Option<Vec<f32>>,
}

fn wrong(path: &Path, error: png::DecodingError) -> PictureError {
    match error {
        png::DecodingError::IoError(source) if source.kind() == std::io::ErrorKind::InvalidData => {
            PictureError::Format { path: path.to_owned(), reason: source.to_string() }
        }
        png::DecodingError::IoError(source) if source.kind() != std::io::ErrorKind::UnexpectedEof => {
            PictureError::Io { action: "read", path: path.to_owned(), source }
        }
        png::DecodingError::IoError(_) => {
            PictureError::Format { path: path.to_owned(), reason: "it ends too early".to_owned() }
        }
        error => {
            // The library prints which chunk it was in as a structure.
            let reason = error.to_string();
            let reason = reason.split(" while decoding ChunkType").next().unwrap_or_default().to_owned();
            PictureError::Format { path: path.to_owned(), reason }
        }
    }
}

impl Reading {
    /// Opens a PNG file of at most `samples_max` samples (see [`SAMPLES_MAX`]) and reads its header.
    ///
    /// # Errors
    /// [`PictureError`] naming the file, if it cannot be read, is no PNG file, or is too large.
    pub fn open(path: &Path, samples_max: usize) -> Result<Reading, PictureError> {
        let file = whole::open_input(path).map_err(|source| PictureError::Io {
            action: "open",
            path: path.to_owned(),
            source,
        })?;
        let mut decoder = Decoder::new(Chunks::new(BufReader::new(file)));
        decoder.set_transformations(Transformations::EXPAND);
        decoder.set_ignore_text_chunk(true);
        decoder.set_ignore_iccp_chunk(true);
        let check = |rows: usize, cols: usize, planes: usize| {
            let samples = rows.checked_mul(cols).and_then(|n| n.checked_mul(planes));
            match samples.is_some_and(|samples| samples <= samples_max) {
                true => Ok(()),
                false => Err(PictureError::TooLarge { path: path.to_owned(), rows, cols, planes, samples_max }),
            }
        };
        let header = decoder.read_header_info().map_err(|e| wrong(path, e))?;
        let (rows, cols) = (header.height as usize, header.width as usize);
        check(rows, cols, header.color_type.samples())?;
        // What the decoder may allocate: a few rows of at most 8 bytes a column, and a fixed amount, so that one inflated
        // chunk does not take all memory.
        let bytes = (64_usize << 20).saturating_add(cols.saturating_mul(64));
        decoder.set_limits(Limits { bytes });
        let reader = decoder.read_info().map_err(|e| wrong(path, e))?;
        // A palette and a transparent colour have become planes of their own.
        let (color, depth) = reader.output_color_type();
        check(rows, cols, color.samples())?;
        let alpha = matches!(color, ColorType::GrayscaleAlpha | ColorType::Rgba);
        let planes = color.samples() - usize::from(alpha);
        let deep = depth == BitDepth::Sixteen;
        Ok(Reading { path: path.to_owned(), reader, rows, cols, planes, alpha, deep })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What reading takes of the memory, in bytes: the samples of a row, what the decoder keeps of some rows (measured: 5 to
    /// 8 of them), and all of a picture that is interlaced.
    pub fn working_bytes(&self) -> u64 {
        let channels = (self.planes + usize::from(self.alpha)) as u64;
        let samples = self.cols as u64 * channels;
        let row_bytes = samples * if self.deep { 2 } else { 1 };
        let whole = if self.reader.info().interlaced { row_bytes * self.rows as u64 } else { 0 };
        size_of::<f32>() as u64 * samples + 8 * row_bytes + whole
    }

    /// Calls `each` with the rows of all channels, opacity last, from the first row of the picture to the last.
    ///
    /// # Errors
    /// [`PictureError`] naming the file, if it is not a whole PNG file; what `each` returns.
    pub fn each_row<E: From<PictureError>>(
        mut self,
        mut each: impl FnMut(&[Vec<f32>]) -> Result<(), E>,
    ) -> Result<(), E> {
        let path = &self.path;
        let channels = self.planes + usize::from(self.alpha);
        let size = if self.deep { 2 } else { 1 };
        let (rows, cols, deep) = (self.rows, self.cols, self.deep);
        let mut samples = vec![Vec::with_capacity(cols); channels];
        let mut give = |bytes: &[u8]| {
            for (channel, samples) in samples.iter_mut().enumerate() {
                samples.clear();
                if deep {
                    let found = bytes.chunks_exact(2).skip(channel).step_by(channels);
                    samples.extend(found.map(|s| f32::from(u16::from_be_bytes([s[0], s[1]])) / 65535.0));
                } else {
                    // Fewer than 8 bits, and palettes, have been expanded to 8.
                    samples.extend(bytes.iter().skip(channel).step_by(channels).map(|&s| f32::from(s) / 255.0));
                }
            }
            each(&samples)
        };
        let smaller = || PictureError::Format {
            path: path.clone(),
            reason: "its first frame is smaller than the picture".to_owned(),
        };
        let row_bytes = cols * channels * size;
        if self.reader.info().interlaced {
            // The header alone may claim anything: memory is asked for without insisting on it.
            let mut bytes: Vec<u8> = Vec::new();
            bytes.try_reserve_exact(rows * row_bytes).map_err(|_| PictureError::Io {
                action: "hold the samples of",
                path: path.clone(),
                source: std::io::Error::new(std::io::ErrorKind::OutOfMemory, "there is too little memory"),
            })?;
            bytes.resize(rows * row_bytes, 0);
            let frame = self.reader.next_frame(&mut bytes).map_err(|e| wrong(path, e))?;
            if (frame.height as usize, frame.width as usize) != (rows, cols) {
                return Err(smaller().into());
            }
            bytes.chunks_exact(row_bytes).try_for_each(give)?;
        } else {
            for _ in 0..rows {
                match self.reader.next_row().map_err(|e| wrong(path, e))? {
                    Some(row) if row.data().len() == row_bytes => give(row.data())?,
                    _ => return Err(smaller().into()),
                }
            }
        }
        self.reader.finish().map_err(|e| wrong(path, e))?;
        Ok(())
    }
}

/// Reads a PNG file of at most `samples_max` samples (see [`SAMPLES_MAX`]) into memory.
///
/// # Errors
/// As for [`Reading::open`] and [`Reading::each_row`].
pub fn read(path: &Path, samples_max: usize) -> Result<Picture, PictureError> {
    let reading = Reading::open(path, samples_max)?;
    let (rows, cols, alpha) = (reading.rows, reading.cols, reading.alpha);
    let mut planes = vec![Vec::new(); reading.planes + usize::from(alpha)];
    reading.each_row(|samples| {
        planes.iter_mut().zip(samples).for_each(|(plane, samples)| plane.extend_from_slice(samples));
        Ok::<(), PictureError>(())
    })?;
    let alpha = if alpha { planes.pop() } else { None };
    Ok(Picture { rows, cols, planes, alpha })
}

/// Writes a picture as a PNG file of 8 bits a sample, replacing what is there when it is complete.
///
/// # Errors
/// As for [`write_rows`], if the planes are no picture or the file cannot be written.
pub fn write(path: &Path, picture: &Picture) -> Result<(), PictureError> {
    let Picture { rows, cols, planes, alpha } = picture;
    let all: Vec<&[f32]> = planes.iter().chain(alpha).map(Vec::as_slice).collect();
    if all.iter().any(|plane| Some(plane.len()) != rows.checked_mul(*cols)) {
        let lengths: Vec<usize> = all.iter().map(|plane| plane.len()).collect();
        let found = format!("given were {} planes of {lengths:?} samples", planes.len());
        return Err(PictureError::Planes { path: path.to_owned(), rows: *rows, cols: *cols, found });
    }
    write_rows(path, (*rows, *cols), (planes.len(), alpha.is_some()), |row, samples| {
        samples.iter_mut().zip(&all).for_each(|(to, plane)| *to = plane[row * cols..][..*cols].to_vec());
        Ok(())
    })
}

/// Writes a picture of so many rows and columns, planes without opacity and perhaps opacity, as a PNG file of 8 bits a
/// sample, replacing what is there when it is complete. `fill` is given the number of a row, from the first to the last,
/// and the samples of all channels to be filled, opacity last.
///
/// # Errors
/// [`PictureError`] naming the file, if this is no picture or the file cannot be written, and what `fill` returns; then what
/// was there before is still there.
pub fn write_rows<E: From<PictureError>>(
    path: &Path,
    (rows, cols): (usize, usize),
    (planes, alpha): (usize, bool),
    mut fill: impl FnMut(usize, &mut [Vec<f32>]) -> Result<(), E>,
) -> Result<(), E> {
    let color = match (planes, alpha) {
        (1, false) => Some(ColorType::Grayscale),
        (1, true) => Some(ColorType::GrayscaleAlpha),
        (3, false) => Some(ColorType::Rgb),
        (3, true) => Some(ColorType::Rgba),
        _ => None,
    };
    let extent = |n: usize| u32::try_from(n).ok().filter(|n| (1..=0x7fff_ffff).contains(n));
    let (Some(color), Some(width), Some(height)) = (color, extent(cols), extent(rows)) else {
        let found = format!("given were {planes} planes");
        return Err(PictureError::Planes { path: path.to_owned(), rows, cols, found }.into());
    };

    let failed = |action| move |source| PictureError::Io { action, path: path.to_owned(), source };
    let encoding = |error: png::EncodingError| match error {
        png::EncodingError::IoError(source) => failed("write")(source),
        error => failed("encode")(std::io::Error::other(error)),
    };
    let mut file = WholeFile::create(path).map_err(failed("create"))?;
    let mut encoder = Encoder::new(BufWriter::new(&mut file), width, height);
    encoder.set_color(color);
    encoder.set_depth(BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(encoding)?;
    let mut stream = writer.stream_writer().map_err(encoding)?;
    let channels = planes + usize::from(alpha);
    let mut line = vec![0_u8; cols * channels];
    let mut samples = vec![vec![0.0; cols]; channels];
    for row in 0..rows {
        fill(row, &mut samples)?;
        for (channel, samples) in samples.iter().enumerate() {
            for (to, &value) in line.iter_mut().skip(channel).step_by(channels).zip(samples) {
                *to = quantize(value);
            }
        }
        stream.write_all(&line).map_err(failed("write"))?;
    }
    stream.finish().map_err(encoding)?;
    writer.finish().map_err(encoding)?;
    file.publish().map_err(failed("write"))?;
    Ok(())
}

/// What writing a picture takes of the memory, in bytes, where the values of so many rows are there at once: these, those of one row, and what
/// the encoder keeps of some rows (measured: 3 of them, and the bytes that are given).
pub fn writing_bytes(cols: u64, planes: usize, alpha: bool, rows: u64) -> u64 {
    let samples = cols.saturating_mul((planes + usize::from(alpha)) as u64);
    samples.saturating_mul(size_of::<f32>() as u64 * (1 + rows) + 4)
}

/// The 8-bit sample for a value.
fn quantize(value: f32) -> u8 {
    // A cast clamps, and makes 0 of NaN.
    (value * 255.0 + 0.5).floor() as u8
}
