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

use multigrain::whole::WholeFile;
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

/// Reads a PNG file of at most `samples_max` samples (see [`SAMPLES_MAX`]).
///
/// # Errors
/// [`PictureError`] naming the file, if it cannot be read, is not a whole PNG file, or is too large.
pub fn read(path: &Path, samples_max: usize) -> Result<Picture, PictureError> {
    let file = File::open(path).map_err(|source| PictureError::Io { action: "open", path: path.to_owned(), source })?;
    let wrong = |error: png::DecodingError| match error {
        png::DecodingError::IoError(source) if source.kind() != std::io::ErrorKind::UnexpectedEof => {
            PictureError::Io { action: "read", path: path.to_owned(), source }
        }
        png::DecodingError::IoError(_) => {
            PictureError::Format { path: path.to_owned(), reason: "it ends too early".to_owned() }
        }
        error => PictureError::Format { path: path.to_owned(), reason: error.to_string() },
    };
    let mut decoder = Decoder::new(BufReader::new(file));
    decoder.set_transformations(Transformations::EXPAND);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let too_large =
        |rows, cols, planes| PictureError::TooLarge { path: path.to_owned(), rows, cols, planes, samples_max };
    let fits = |rows: usize, cols: usize, planes: usize| {
        let samples = rows.checked_mul(cols).and_then(|n| n.checked_mul(planes));
        samples.is_some_and(|samples| samples <= samples_max)
    };
    let header = decoder.read_header_info().map_err(wrong)?;
    let (rows, cols) = (header.height as usize, header.width as usize);
    if !fits(rows, cols, header.color_type.samples()) {
        return Err(too_large(rows, cols, header.color_type.samples()));
    }
    // What the decoder may allocate beside the picture itself: a few rows of at most 8 bytes a
    // column, and a fixed amount, so that one inflated chunk does not take all memory.
    let bytes = (64_usize << 20).saturating_add(cols.saturating_mul(64));
    decoder.set_limits(Limits { bytes });
    let mut reader = decoder.read_info().map_err(wrong)?;

    // A palette and a transparent colour have become planes of their own.
    let (color, depth) = reader.output_color_type();
    let channels = color.samples();
    let buffer_bytes = match reader.output_buffer_size() {
        Some(bytes) if fits(rows, cols, channels) => bytes,
        _ => return Err(too_large(rows, cols, channels)),
    };

    let count = rows * cols;
    // The header alone may claim anything: memory is asked for without insisting on it.
    let memory = |bytes: usize| PictureError::Io {
        action: "hold the samples of",
        path: path.to_owned(),
        source: std::io::Error::new(std::io::ErrorKind::OutOfMemory, format!("{bytes} bytes of memory cannot be had")),
    };
    let mut bytes: Vec<u8> = Vec::new();
    bytes.try_reserve_exact(buffer_bytes).map_err(|_| memory(buffer_bytes))?;
    bytes.resize(buffer_bytes, 0);
    let frame = reader.next_frame(&mut bytes).map_err(wrong)?;
    reader.finish().map_err(wrong)?;
    if (frame.height as usize, frame.width as usize) != (rows, cols) {
        let reason = "its first frame is smaller than the picture".to_owned();
        return Err(PictureError::Format { path: path.to_owned(), reason });
    }

    let mut planes = Vec::with_capacity(channels);
    for channel in 0..channels {
        let mut plane: Vec<f32> = Vec::new();
        plane.try_reserve_exact(count).map_err(|_| memory(4 * count))?;
        if depth == BitDepth::Sixteen {
            let samples = bytes.chunks_exact(2).skip(channel).step_by(channels);
            plane.extend(samples.map(|s| f32::from(u16::from_be_bytes([s[0], s[1]])) / 65535.0));
        } else {
            // Fewer than 8 bits, and palettes, have been expanded to 8.
            let samples = bytes.iter().skip(channel).step_by(channels);
            plane.extend(samples.map(|&s| f32::from(s) / 255.0));
        }
        planes.push(plane);
    }
    let alpha = match color {
        ColorType::GrayscaleAlpha | ColorType::Rgba => planes.pop(),
        _ => None,
    };
    Ok(Picture { rows, cols, planes, alpha })
}

/// Writes a picture as a PNG file of 8 bits a sample, replacing what is there when it is complete.
///
/// # Errors
/// [`PictureError`] naming the file, if the planes are no picture or the file cannot be written;
/// then what was there before is still there.
pub fn write(path: &Path, picture: &Picture) -> Result<(), PictureError> {
    let Picture { rows, cols, planes, alpha } = picture;
    let planes: Vec<&[f32]> = planes.iter().chain(alpha).map(Vec::as_slice).collect();
    let color = match (picture.planes.len(), alpha.is_some()) {
        (1, false) => Some(ColorType::Grayscale),
        (1, true) => Some(ColorType::GrayscaleAlpha),
        (3, false) => Some(ColorType::Rgb),
        (3, true) => Some(ColorType::Rgba),
        _ => None,
    };
    let count = rows.checked_mul(*cols);
    let extent = |n: usize| u32::try_from(n).ok().filter(|n| (1..=0x7fff_ffff).contains(n));
    let fits = planes.iter().all(|plane| Some(plane.len()) == count);
    let (Some(color), Some(width), Some(height), true) = (color, extent(*cols), extent(*rows), fits) else {
        let lengths: Vec<usize> = planes.iter().map(|plane| plane.len()).collect();
        return Err(PictureError::Planes {
            path: path.to_owned(),
            rows: *rows,
            cols: *cols,
            found: format!("given were {} planes of {lengths:?} samples", picture.planes.len()),
        });
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
    let mut line = vec![0_u8; cols * planes.len()];
    for row in 0..*rows {
        for (channel, plane) in planes.iter().enumerate() {
            let samples = &plane[row * cols..][..*cols];
            for (to, &value) in line.iter_mut().skip(channel).step_by(planes.len()).zip(samples) {
                *to = quantize(value);
            }
        }
        stream.write_all(&line).map_err(failed("write"))?;
    }
    stream.finish().map_err(encoding)?;
    writer.finish().map_err(encoding)?;
    file.publish().map_err(failed("write"))
}

/// The 8-bit sample for a value.
fn quantize(value: f32) -> u8 {
    // A cast clamps, and makes 0 of NaN.
    (value * 255.0 + 0.5).floor() as u8
}
