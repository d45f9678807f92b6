//! What streams have in them: that no way to predict a macroblock is dead.

use super::syntax::Type;
use super::{Row, RowCoder};
use crate::encoder::{Encoder, Next, Options};
use crate::headers::{Profile, Properties, Ratio, Structure};
use crate::kernel::Kernels;
use crate::picture::{Kind, Size};
use crate::rate::{Keys, Rate};
use crate::search::Effort;
use crate::source::Source;
use multigrain_simd::Isa;
use std::collections::BTreeMap;

#[path = "../../tests/all/support/pictures.rs"]
mod pictures;

/// All nine modes of blocks, and all four of whole macroblocks, of luma and of chroma, are chosen.
#[test]
fn all_modes_within_a_picture_are_chosen() {
    let size = Size { width: 70, height: 54 };
    let properties = Properties::plain(size, Ratio { over: 25, under: 1 });
    let kernels = Kernels::new(Isa::detect());
    let (mut blocks, mut wholes, mut chroma) = ([0; 9], BTreeMap::new(), BTreeMap::new());
    for qp in (0..52).step_by(3) {
        let options = Options {
            rate: Rate::Constant(qp),
            keys: Keys { interval: 1, at_cuts: false },
            effort: Effort { steps: 8, fine: 2, enough: 8, intra: 8, has_parts: true, skips_first: false },
            profile: Profile::Main,
            structure: Structure::PLAIN,
        };
        let mut encoder = Encoder::new(properties, options, &kernels);
        for number in 0..12 {
            let mut source = Source::default();
            source.fill(size, &pictures::planes(size.width, size.height, number));
            encoder.push(source);
        }
        encoder.end();
        while let Next::Picture(flight) = encoder.advance() {
            let shot = flight.wave.shot();
            for row in 0..size.rows() {
                let mut coder = RowCoder::new(shot, row, false);
                for x in 0..size.columns() {
                    // SAFETY: rows are coded one after the other, by this thread alone.
                    unsafe { coder.code(x) };
                    // SAFETY: as above.
                    let found = unsafe { shot.picture.macroblocks.get(row * size.columns() + x) };
                    if found.kind == Kind::Intra4 {
                        found.modes.iter().for_each(|mode| blocks[usize::from(*mode)] += 1);
                    }
                }
                let Row::Syntax(all) = coder.finish() else { panic!("arithmetic codes are written last") };
                for one in all {
                    if let Type::Intra16(mode) = one.kind {
                        *wholes.entry(mode).or_insert(0) += 1;
                    }
                    *chroma.entry(one.chroma_mode).or_insert(0) += 1;
                }
            }
        }
    }
    assert!(blocks.iter().all(|count| *count > 0), "{blocks:?}");
    assert!((0..4).all(|mode| wholes.contains_key(&mode)), "{wholes:?}");
    assert!((0..4).all(|mode| chroma.contains_key(&mode)), "{chroma:?}");
}
