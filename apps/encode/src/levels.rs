//! Levels: what a decoder has to hold and how fast it has to be (Table A-1 of the standard).
//!
//! How large pictures are, how many a second and how many are kept is known before the first is encoded; what they take is not,
//! unless a rate of bits was asked for. So the level of a stream is that of the former, and of what was asked for; that of
//! a file becomes the one that holds what was taken, too, when all is encoded ([`Taken`]).

use crate::headers::Properties;
use crate::picture::Size;

/// A level of Table A-1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Ten times its number (`level_idc`).
    pub number: u8,
    /// Macroblocks a second.
    speed: u64,
    /// Macroblocks of a picture.
    area: u64,
    /// Macroblocks of all pictures that are kept.
    memory: u64,
    /// Bits a second, and of the buffer between the stream and the decoder; as for units of pictures.
    rate: f64,
    buffer: f64,
    /// A picture has so many times fewer bytes than samples, at least, unless it takes longer.
    ratio: f64,
}

const fn level(number: u8, [speed, area, memory]: [u64; 3], rate_kb: u32, buffer_kb: u32, ratio: u8) -> Level {
    let (rate, buffer) = (rate_kb as f64 * 1e3, buffer_kb as f64 * 1e3);
    Level { number, speed, area, memory, rate, buffer, ratio: ratio as f64 }
}

/// Vectors lead up to 128 samples up or down from level 1.1 on, so there is none below.
const LEVELS: [Level; 18] = [
    level(11, [3000, 396, 900], 192, 500, 2),
    level(12, [6000, 396, 2376], 384, 1000, 2),
    level(13, [11880, 396, 2376], 768, 2000, 2),
    level(20, [11880, 396, 2376], 2000, 2000, 2),
    level(21, [19800, 792, 4752], 4000, 4000, 2),
    level(22, [20250, 1620, 8100], 4000, 4000, 2),
    level(30, [40500, 1620, 8100], 10_000, 10_000, 2),
    level(31, [108_000, 3600, 18000], 14_000, 14_000, 4),
    level(32, [216_000, 5120, 20480], 20_000, 20_000, 4),
    level(40, [245_760, 8192, 32768], 20_000, 25_000, 4),
    level(41, [245_760, 8192, 32768], 50_000, 62_500, 2),
    level(42, [522_240, 8704, 34816], 50_000, 62_500, 2),
    level(50, [589_824, 22080, 110_400], 135_000, 135_000, 2),
    level(51, [983_040, 36864, 184_320], 240_000, 240_000, 2),
    level(52, [2_073_600, 36864, 184_320], 240_000, 240_000, 2),
    level(60, [4_177_920, 139_264, 696_320], 240_000, 240_000, 2),
    level(61, [8_355_840, 139_264, 696_320], 480_000, 480_000, 2),
    level(62, [16_711_680, 139_264, 696_320], 800_000, 800_000, 2),
];

/// Bytes of the samples of a macroblock.
const MACROBLOCK_BYTES: f64 = 384.0;

/// Of the first picture at least so many seconds' macroblocks count (`fR` of A.3.1).
const FIRST_SECONDS: f64 = 1.0 / 172.0;

/// So much more than the rate that was asked for may be taken for a while.
const SWAY: f64 = 1.25;

/// How many pictures of a size are kept at most.
pub fn kept_max(size: Size) -> usize {
    (LEVELS[LEVELS.len() - 1].memory as usize / size.macroblocks()).clamp(1, 16)
}

impl Level {
    /// Whether pictures are small and few enough.
    fn holds(&self, properties: &Properties, kept: usize) -> bool {
        let Properties { size, rate, .. } = properties;
        let macroblocks = size.macroblocks() as u64;
        // Neither side may be longer than the root of eight times the picture (A.3.1).
        let long = size.columns().max(size.rows()) as u64;
        macroblocks * u64::from(rate.over) <= self.speed * u64::from(rate.under)
            && macroblocks <= self.area
            && long * long <= 8 * self.area
            && macroblocks * kept as u64 <= self.memory
    }
}

/// The number of the least level that holds such pictures, of which so many are kept, and so many bits a second; of the last, where
/// none does.
pub fn expected(properties: &Properties, kept: usize, bits_per_second: Option<f64>) -> u8 {
    let bits = bits_per_second.unwrap_or(0.0);
    let holds = |level: &&Level| level.holds(properties, kept) && bits * SWAY <= level.rate && bits <= level.buffer;
    LEVELS.iter().find(holds).unwrap_or(&LEVELS[LEVELS.len() - 1]).number
}

/// Whether any level holds such pictures, of which so many are kept.
pub fn is_held(properties: &Properties, kept: usize) -> bool {
    LEVELS[LEVELS.len() - 1].holds(properties, kept)
}

/// What pictures have taken so far, beside what each level allows: a buffer that is full at first gives the bits of a picture at
/// once and is filled at the level's rate (Annex C); and a picture is not too large by itself (A.3.1).
#[derive(Clone, Debug)]
pub struct Taken {
    properties: Properties,
    kept: usize,
    is_first: bool,
    /// By level: bits in the buffer; none where there were too few once, or a picture was too large.
    left: [Option<f64>; LEVELS.len()],
}

impl Taken {
    /// Nothing.
    pub fn new(properties: &Properties, kept: usize) -> Taken {
        Taken { properties: *properties, kept, is_first: true, left: LEVELS.map(|level| Some(level.buffer)) }
    }

    /// The next picture in the order of decoding.
    pub fn add(&mut self, bytes: usize) {
        let Properties { size, rate, .. } = self.properties;
        let seconds = f64::from(rate.under) / f64::from(rate.over);
        let first = std::mem::replace(&mut self.is_first, false).then_some(size.macroblocks() as f64);
        for (level, left) in LEVELS.iter().zip(&mut self.left) {
            let macroblocks = match first {
                Some(macroblocks) => macroblocks.max(level.speed as f64 * FIRST_SECONDS),
                None => level.speed as f64 * seconds,
            };
            let fits = bytes as f64 <= MACROBLOCK_BYTES * macroblocks / level.ratio;
            let rest = left.map(|left| left - 8.0 * bytes as f64).filter(|rest| fits && *rest >= 0.0);
            *left = rest.map(|rest| (rest + level.rate * seconds).min(level.buffer));
        }
    }

    /// The number of the least level that held all of it; of the last, where none did.
    pub fn level(&self) -> u8 {
        let all = LEVELS.iter().zip(&self.left);
        let held = all.filter(|(level, left)| left.is_some() && level.holds(&self.properties, self.kept));
        held.map(|(level, _)| level.number).next().unwrap_or(LEVELS[LEVELS.len() - 1].number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::Ratio;

    fn properties(width: usize, height: usize, over: u32) -> Properties {
        Properties::plain(Size { width, height }, Ratio { over, under: 1 })
    }

    /// Sizes, speeds, pictures that are kept and rates, as players are sold by.
    #[test]
    fn levels_are_those_of_the_table() {
        for ((width, height, fps), kept, kb, level) in [
            ((176, 144, 15), 1, None, 11),
            ((352, 288, 30), 1, None, 13),
            ((352, 288, 30), 6, Some(1500.0), 20),
            ((352, 288, 30), 7, None, 21),
            ((720, 576, 25), 5, None, 30),
            ((1280, 720, 30), 5, Some(11_200.0), 31),
            ((1280, 720, 30), 5, Some(11_300.0), 32),
            ((1920, 1088, 30), 4, None, 40),
            ((1920, 1088, 30), 4, Some(40_000.0), 41),
            ((1920, 1088, 60), 4, None, 42),
            ((1920, 1088, 30), 4, Some(50_000.0), 50),
            ((3840, 2160, 30), 5, None, 51),
            ((3840, 2160, 60), 5, None, 52),
            ((7680, 4320, 60), 5, None, 61),
            ((7680, 4320, 120), 5, None, 62),
            ((16384, 16384, 120), 16, None, 62),
            // Long and low.
            ((4096, 16, 1), 1, None, 40),
        ] {
            let found = expected(&properties(width, height, fps), kept, kb.map(|kb| kb * 1e3));
            assert_eq!(found, level, "{width} x {height} at {fps}, {kept} kept, {kb:?} kb/s");
            let is_held = is_held(&properties(width, height, fps), kept);
            assert_eq!(is_held, width < 16384, "{width} x {height} at {fps}, {kept} kept");
        }
    }

    #[test]
    fn what_was_taken_raises_the_level() {
        let of = |bytes: &dyn Fn(usize) -> usize| {
            let mut taken = Taken::new(&properties(1920, 1088, 25), 4);
            (0..500).for_each(|i| taken.add(bytes(i)));
            taken.level()
        };
        // 20 Mb/s, a bit more for long, and for a moment.
        assert_eq!(of(&|_| 100_000), 40);
        assert_eq!(of(&|i| if i < 100 { 110_000 } else { 100_000 }), 40);
        assert_eq!(of(&|_| 110_000), 41);
        assert_eq!(of(&|i| if i % 100 < 50 { 210_000 } else { 0 }), 41);
        // One that is larger than the buffer of level 4, or has less than a quarter of a picture's samples.
        assert_eq!(of(&|i| if i == 9 { 750_000 } else { 1000 }), 40);
        assert_eq!(of(&|i| if i == 9 { 950_000 } else { 1000 }), 41);
        assert_eq!(of(&|i| if i == 9 { 4_000_000 } else { 1000 }), 42);
    }
}
