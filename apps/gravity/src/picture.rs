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

/// Light that is gathered before it becomes a picture, in [`UNITS`].
pub(crate) struct Canvas {
    width: usize,
    height: usize,
    light: Vec<[u16; 3]>,
}

/// Where in space the picture lies: the two axes, the middle, and pixels a unit of length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Frame {
    axes: [usize; 2],
    middle: [f64; 2],
    scale: f64,
    extent: [usize; 2],
}

impl Frame {
    /// The frame of some places.
    pub(crate) fn of(places: &[[f64; 3]]) -> Frame {
        let mut ranges = [(0.0, 0.0); 3];
        for (d, range) in ranges.iter_mut().enumerate() {
            let mut values: Vec<f64> = places.iter().map(|p| p[d]).filter(|v| v.is_finite()).collect();
            values.sort_by(f64::total_cmp);
            if let (Some(&low), Some(&high)) = (values.first(), values.last()) {
                let skip = ((1.0 - INSIDE) / 2.0 * values.len() as f64) as usize;
                *range = if skip == 0 { (low, high) } else { (values[skip], values[values.len() - 1 - skip]) };
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
        Frame {
            axes,
            middle: axes.map(|d| 0.5 * (ranges[d].0 + ranges[d].1)),
            scale,
            extent: [pixels(axes[0]), pixels(axes[1])],
        }
    }

    /// Pixel coordinates of a place; up is up.
    fn project(&self, place: &[f64; 3]) -> [f64; 2] {
        let along = |k: usize| (place[self.axes[k]] - self.middle[k]) * self.scale;
        [self.extent[0] as f64 / 2.0 + along(0), self.extent[1] as f64 / 2.0 - along(1)]
    }
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
    pub(crate) fn new(frame: &Frame) -> Canvas {
        let [width, height] = frame.extent;
        Canvas { width, height, light: vec![[0; 3]; width * height] }
    }

    fn add(&mut self, x: f64, y: f64, light: [f32; 3]) {
        if x >= 0.0 && y >= 0.0 && x < self.width as f64 && y < self.height as f64 {
            let pixel = &mut self.light[y as usize * self.width + x as usize];
            pixel.iter_mut().zip(light).for_each(|(to, light)| *to = to.saturating_add((light * UNITS) as u16));
        }
    }

    /// Lines from the places of one snapshot to those of the next; `age` grows from 0 to 1.
    pub(crate) fn lines(&mut self, frame: &Frame, from: &[[f64; 3]], to: &[[f64; 3]], age: f64, snapshots: u64) {
        let stride = (from.len().saturating_mul(snapshots as usize)).div_ceil(LINES_MAX).max(1);
        for (particle, (from, to)) in from.iter().zip(to).enumerate().step_by(stride) {
            let (a, b) = (frame.project(from), frame.project(to));
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

    /// A dot for each place.
    pub(crate) fn dots(&mut self, frame: &Frame, places: &[[f64; 3]]) {
        let bright = if places.len() <= 1000 { 1 } else { 0 };
        for (particle, place) in places.iter().enumerate() {
            let [x, y] = frame.project(place);
            for dy in -bright..=bright {
                for dx in -bright..=bright {
                    self.add(x + f64::from(dx), y + f64::from(dy), colour(particle));
                }
            }
        }
    }

    /// Writes the picture: whole under its name, or not at all.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Error> {
        let failed = |e: std::io::Error| Error::After(format!("{}: {e}; the picture was not written", path.display()));
        whole::write(path, |out| self.encode(out)).map_err(failed)
    }

    fn encode(&self, out: &mut impl Write) -> std::io::Result<()> {
        let mut encoder = png::Encoder::new(out, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(std::io::Error::other)?;
        // Light adds up without end; a picture is white at most.
        let tone = |light: u16| (255.0 * f32::from(light) / (0.5 * UNITS + f32::from(light))) as u8;
        let mut stream = writer.stream_writer().map_err(std::io::Error::other)?;
        for row in self.light.chunks(self.width) {
            let samples: Vec<u8> = row.iter().flatten().map(|&light| tone(light)).collect();
            stream.write_all(&samples)?;
        }
        stream.finish().map_err(std::io::Error::other)?;
        writer.finish().map_err(std::io::Error::other)
    }
}

/// Refuses before the run what would only fail after it.
pub(crate) fn check_target(path: &Path) -> Result<(), Error> {
    if !path.extension().is_some_and(|e| e.eq_ignore_ascii_case("png")) {
        let shown = path.display();
        return Err(Error::Request(format!("{shown}: pictures are written as PNG; give it a name that ends in .png")));
    }
    Ok(whole::check_target(path)?)
}
