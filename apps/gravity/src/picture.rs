//! A picture of the orbits: the places of all snapshots, seen along the axis on which they spread least, joined by lines
//! that grow brighter towards the end; where many lines cross, light adds up.

use multigrain::prelude::Error;
use multigrain::whole;
use std::io::Write;
use std::path::Path;

/// Pixels of the longer side.
const SIZE: usize = 1024;
/// Pixels left free on each side.
const MARGIN: usize = 24;
/// Of all places, the part that the picture must hold; a few that escape do not make the rest small.
const INSIDE: f64 = 0.98;
/// Lines that are drawn; of more particles, every so many.
const LINES_MAX: usize = 1 << 23;

/// Units of light of 1. A pixel holds up to 128, of which tone mapping makes the last shade but one of white.
const UNITS: f32 = 512.0;

/// Light that is gathered before it becomes some rows of a picture, in [`UNITS`]. However it is added, in parts and in which
/// order, it comes to the same.
pub(crate) struct Canvas {
    width: usize,
    /// Rows of the picture above it.
    above: usize,
    rows: usize,
    light: Vec<[u16; 3]>,
}

/// Bytes of a pixel's light.
pub(crate) const PIXEL_BYTES: u64 = size_of::<[u16; 3]>() as u64;

/// Where in space the picture lies: the two axes, the middle, and pixels a unit of length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Frame {
    axes: [usize; 2],
    middle: [f64; 2],
    scale: f64,
    extent: [usize; 2],
}

impl Frame {
    /// The frame of some places, which `all` shows one after the other, as often as it is asked.
    pub(crate) fn of<E>(mut all: impl FnMut(&mut dyn FnMut([f64; 3])) -> Result<(), E>) -> Result<Frame, E> {
        let mut counts = [0u64; 3];
        all(&mut |place| {
            counts.iter_mut().zip(place).filter(|(_, value)| value.is_finite()).for_each(|(count, _)| *count += 1);
        })?;
        // The least and the largest that the picture must hold, by their ranks.
        let ranks = counts.map(|count| {
            let skip = ((1.0 - INSIDE) / 2.0 * count as f64) as u64;
            [skip, count.saturating_sub(1 + skip)]
        });
        let found = of_ranks(ranks, all)?;
        let mut ranges = [(0.0, 0.0); 3];
        for ((range, found), count) in ranges.iter_mut().zip(found).zip(counts) {
            if count > 0 {
                *range = (found[0], found[1]);
            }
        }
        let length = |d: usize| ranges[d].1 - ranges[d].0;
        // The shortest axis is looked along; of equal ones the last.
        let along = (0..3).rev().min_by(|&a, &b| length(a).total_cmp(&length(b))).unwrap_or(2);
        let mut axes = [0, 1, 2].into_iter().filter(|&d| d != along);
        let axes = [axes.next().unwrap_or(0), axes.next().unwrap_or(1)];
        let longest = length(axes[0]).max(length(axes[1])).max(f64::MIN_POSITIVE);
        let scale = (SIZE - 2 * MARGIN) as f64 / longest;
        let scale = if scale.is_finite() { scale } else { 1.0 };
        let pixels = |d: usize| ((length(d) * scale) as usize + 2 * MARGIN).clamp(SIZE / 2, SIZE);
        Ok(Frame {
            axes,
            middle: axes.map(|d| 0.5 * (ranges[d].0 + ranges[d].1)),
            scale,
            extent: [pixels(axes[0]), pixels(axes[1])],
        })
    }

    /// Width and height in pixels.
    pub(crate) fn extent(&self) -> [usize; 2] {
        self.extent
    }

    /// Pixel coordinates of a place; up is up.
    fn project(&self, place: &[f64; 3]) -> [f64; 2] {
        let along = |k: usize| (place[self.axes[k]] - self.middle[k]) * self.scale;
        [self.extent[0] as f64 / 2.0 + along(0), self.extent[1] as f64 / 2.0 - along(1)]
    }
}

/// Along each axis the finite numbers of two ranks, by the digits of numbers that are ordered as they are: as many passes as
/// digits, and next to no memory.
fn of_ranks<E>(
    ranks: [[u64; 2]; 3],
    mut all: impl FnMut(&mut dyn FnMut([f64; 3])) -> Result<(), E>,
) -> Result<[[f64; 2]; 3], E> {
    // As `f64::total_cmp` orders them.
    let ordered = |value: f64| {
        let bits = value.to_bits();
        bits ^ if bits >> 63 == 1 { u64::MAX } else { 1 << 63 }
    };
    let number = |bits: u64| f64::from_bits(bits ^ if bits >> 63 == 1 { 1 << 63 } else { u64::MAX });
    let mut found = [[0u64; 2]; 3];
    let mut left = ranks;
    for shift in (0..64).step_by(8).rev() {
        let mut counts = [[[0u64; 256]; 2]; 3];
        all(&mut |place| {
            for ((value, found), counts) in place.into_iter().zip(&found).zip(&mut counts) {
                let bits = ordered(value);
                for (found, counts) in found.iter().zip(counts).filter(|_| value.is_finite()) {
                    // Those that begin with the digits that were found.
                    if (bits ^ found) >> shift < 256 {
                        counts[(bits >> shift & 255) as usize] += 1;
                    }
                }
            }
        })?;
        for ((found, left), counts) in found.iter_mut().zip(&mut left).zip(&counts) {
            for ((found, left), counts) in found.iter_mut().zip(left).zip(counts) {
                for (digit, &count) in (0u64..).zip(counts) {
                    if *left < count {
                        *found |= digit << shift;
                        break;
                    }
                    *left -= count;
                }
            }
        }
    }
    Ok(found.map(|found| found.map(number)))
}

/// A colour of its own for each particle: hues by the golden ratio, so that neighbours differ.
fn colour(particle: usize) -> [f32; 3] {
    let hue = (particle as f64 * 0.618_033_988_749_895).fract() * 6.0;
    let ramp = |shift: f64| {
        let h = (hue + shift).rem_euclid(6.0);
        (0.35 + 0.65 * ((h - 3.0).abs() - 1.0).clamp(0.0, 1.0)) as f32
    };
    [ramp(0.0), ramp(4.0), ramp(2.0)]
}

impl Canvas {
    /// Some rows of a picture, from the top.
    pub(crate) fn new(frame: &Frame, above: usize, rows: usize) -> Canvas {
        let [width, height] = frame.extent;
        let rows = rows.min(height - above);
        Canvas { width, above, rows, light: vec![[0; 3]; width * rows] }
    }

    fn add(&mut self, x: f64, y: f64, light: [f32; 3]) {
        let y = y - self.above as f64;
        if x >= 0.0 && y >= 0.0 && x < self.width as f64 && y < self.rows as f64 {
            let pixel = &mut self.light[y as usize * self.width + x as usize];
            pixel.iter_mut().zip(light).for_each(|(to, light)| *to = to.saturating_add((light * UNITS) as u16));
        }
    }

    /// Lines of some of `n` particles, from number `first` on, from their places in one snapshot to those in the next; `age`
    /// grows from 0 to 1.
    pub(crate) fn lines(
        &mut self,
        frame: &Frame,
        (first, n): (u64, u64),
        from: &[[f64; 7]],
        to: &[[f64; 7]],
        age: f64,
        snapshots: u64,
    ) {
        let stride = (n as usize).saturating_mul(snapshots as usize).div_ceil(LINES_MAX).max(1);
        for (particle, (from, to)) in (first as usize..).zip(from.iter().zip(to)) {
            if !particle.is_multiple_of(stride) {
                continue;
            }
            let [from, to] = [from, to].map(place);
            let (a, b) = (frame.project(&from), frame.project(&to));
            let length = (b[0] - a[0]).abs().max((b[1] - a[1]).abs());
            if !length.is_finite() || length > 4.0 * SIZE as f64 {
                continue;
            }
            let steps = length.ceil().max(1.0) as usize;
            let light = colour(particle).map(|c| c * (0.15 + 0.35 * age as f32));
            for step in 0..steps {
                let part = step as f64 / steps as f64;
                self.add(a[0] + part * (b[0] - a[0]), a[1] + part * (b[1] - a[1]), light);
            }
        }
    }

    /// A dot for each of some of `n` particles, from number `first` on.
    pub(crate) fn dots(&mut self, frame: &Frame, (first, n): (u64, u64), rows: &[[f64; 7]]) {
        let bright = if n <= 1000 { 1 } else { 0 };
        for (particle, row) in (first as usize..).zip(rows) {
            let [x, y] = frame.project(&place(row));
            for dy in -bright..=bright {
                for dx in -bright..=bright {
                    self.add(x + f64::from(dx), y + f64::from(dy), colour(particle));
                }
            }
        }
    }
}

/// The place of a particle.
pub(crate) fn place(row: &[f64; 7]) -> [f64; 3] {
    [row[1], row[2], row[3]]
}

/// Writes a picture, `rows` of its rows at a time, which `draw` draws: whole under its name, or not at all.
pub(crate) fn write(
    path: &Path,
    frame: &Frame,
    rows: usize,
    mut draw: impl FnMut(&mut Canvas) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut unread = None;
    let written = whole::write(path, |out| {
        let [width, height] = frame.extent;
        let mut encoder = png::Encoder::new(out, width as u32, height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(std::io::Error::other)?;
        // Light adds up without end; a picture is white at most.
        let tone = |light: u16| (255.0 * f32::from(light) / (0.5 * UNITS + f32::from(light))) as u8;
        let mut stream = writer.stream_writer().map_err(std::io::Error::other)?;
        for above in (0..height).step_by(rows.max(1)) {
            let mut canvas = Canvas::new(frame, above, rows.max(1));
            draw(&mut canvas).map_err(|error| {
                let why = std::io::Error::other(error.to_string());
                unread = Some(error);
                why
            })?;
            for row in canvas.light.chunks(width) {
                let samples: Vec<u8> = row.iter().flatten().map(|&light| tone(light)).collect();
                stream.write_all(&samples)?;
            }
        }
        stream.finish().map_err(std::io::Error::other)?;
        writer.finish().map_err(std::io::Error::other)
    });
    let failed = |e: std::io::Error| Error::After(format!("{}: {e}; the picture was not written", path.display()));
    written.map_err(|error| unread.take().unwrap_or_else(|| failed(error)))
}

/// Refuses before the run what would only fail after it.
pub(crate) fn check_target(path: &Path) -> Result<(), Error> {
    if !path.extension().is_some_and(|e| e.eq_ignore_ascii_case("png")) {
        let shown = path.display();
        return Err(Error::Request(format!("{shown}: pictures are written as PNG; give it a name that ends in .png")));
    }
    Ok(whole::check_target(path)?)
}
