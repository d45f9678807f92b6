//! What coefficients are divided and multiplied by (8.5.9 to 8.5.12 of the standard, and its inverse).

use crate::kernel::{Division, Lanes};
use crate::tables::{DEQUANT, QUANT, SCALE_CLASS, chroma_qp};

/// All of one quantiser.
#[derive(Clone, Debug)]
pub struct Quantiser {
    /// For blocks predicted from the same picture: a third of a step is rounded up.
    pub intra: Division,
    /// For blocks predicted from another: a sixth.
    pub inter: Division,
    /// What levels are multiplied by.
    pub scale: [i16; 16],
    qp: u8,
    /// Steps below which a coefficient is worth less than its bits; none where rounding sees to that.
    least: Option<f64>,
}

/// Steps below which a coefficient is worth less than its bits, where chroma has the quantiser of luma.
const LEAST: f64 = 0.83;

/// By so much the quantiser of chroma may be less than that of luma before that matters.
const BEHIND: i32 = 3;

fn division(qp: u8, part: u32) -> Division {
    let factor = SCALE_CLASS.map(|class| ((2 * QUANT[usize::from(qp % 6)][class]) >> (qp / 6)) as u16);
    Division { factor, bias: factor.map(|factor| (65536 / part / u32::from(factor)) as u16) }
}

impl Quantiser {
    /// That of chroma where that of luma is a number from 0 to 51. The steps of chroma end to grow at a quarter of luma's, and what
    /// a bit is worth does not: there small coefficients would take most bits of a picture, and more the worse it is predicted.
    pub fn chroma(qp: u8) -> Quantiser {
        let own = chroma_qp(qp);
        // From where it matters on, and within a few steps by as much as what a bit is worth has grown beyond.
        let behind = i32::from(qp - own);
        let more = behind.min(2 * (behind - BEHIND));
        let least = (more > 0).then(|| LEAST * (f64::from(more) / 6.0).exp2());
        Quantiser { least, ..Quantiser::new(own) }
    }

    /// Clears coefficients that are worth too little.
    pub fn spare(&self, lanes: &mut Lanes) {
        let Some(least) = self.least else { return };
        for (values, factor) in lanes.0.iter_mut().zip(self.inter.factor) {
            let least = (least * 65536.0 / f64::from(factor)).min(f64::from(i16::MAX)) as i16;
            values.iter_mut().for_each(|value| *value &= -i16::from(value.abs() >= least));
        }
    }

    /// That of a number from 0 to 51.
    pub fn new(qp: u8) -> Quantiser {
        let scale = SCALE_CLASS.map(|class| (DEQUANT[usize::from(qp % 6)][class] << (qp / 6)) as i16);
        Quantiser { intra: division(qp, 3), inter: division(qp, 6), scale, qp, least: None }
    }

    /// The level of a coefficient of constant parts that were transformed once more, `part` of a step rounded up: up to 6528, more
    /// than [`LEVEL_MAX`](crate::cavlc::LEVEL_MAX).
    fn dc_level(&self, value: i32, part: u32) -> i16 {
        let bits = 16 + u32::from(self.qp / 6);
        let factor = QUANT[usize::from(self.qp % 6)][0] as u32;
        // Below 2^30: sixteen constant parts of at most 16 * 255 each, halved.
        let size = value.unsigned_abs() * factor;
        if self.least.is_some_and(|least| f64::from(size) < least * f64::from(1 << bits)) {
            return 0;
        }
        let level = ((size + (1 << bits) / part) >> bits) as i16;
        if value < 0 { -level } else { level }
    }

    /// Constant parts of the 16 blocks of luma, row by row: their levels.
    pub fn luma_dc(&self, values: &[i16; 16]) -> [i16; 16] {
        hadamard(values.map(i32::from)).map(|value| self.dc_level((value + 1) >> 1, 3))
    }

    /// And back (8.5.10).
    pub fn luma_dc_back(&self, levels: &[i16; 16]) -> [i16; 16] {
        let scale = 16 * DEQUANT[usize::from(self.qp % 6)][0];
        let shift = self.qp / 6;
        hadamard(levels.map(i32::from)).map(|value| match shift {
            6.. => ((value * scale) << (shift - 6)) as i16,
            _ => ((value * scale + (1 << (5 - shift))) >> (6 - shift)) as i16,
        })
    }

    /// Constant parts of the 4 blocks of a chroma plane: their levels.
    pub fn chroma_dc(&self, values: [i16; 4], is_intra: bool) -> [i16; 4] {
        pairs(values.map(i32::from)).map(|value| self.dc_level(value, if is_intra { 3 } else { 6 }))
    }

    /// And back (8.5.11).
    pub fn chroma_dc_back(&self, levels: [i16; 4]) -> [i16; 4] {
        let scale = 16 * DEQUANT[usize::from(self.qp % 6)][0];
        pairs(levels.map(i32::from)).map(|value| (((value * scale) << (self.qp / 6)) >> 5) as i16)
    }
}

fn pairs([a, b, c, d]: [i32; 4]) -> [i32; 4] {
    [a + b + c + d, a - b + c - d, a + b - c - d, a - b - c + d]
}

fn hadamard(mut values: [i32; 16]) -> [i32; 16] {
    let mut step = |places: [usize; 4]| {
        let [a, b, c, d] = places.map(|place| values[place]);
        let results = [a + b + c + d, a + b - c - d, a - b - c + d, a - b + c - d];
        places.into_iter().zip(results).for_each(|(place, result)| values[place] = result);
    };
    (0..4).for_each(|i| step([4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3]));
    (0..4).for_each(|i| step([i, i + 4, i + 8, i + 12]));
    values
}
