//! The kernel against its definition, bit for bit, and against double precision.

use multigrain_saxpy::kernel::{self, SaxpyError};
use multigrain_simd::{Isa, NAN_BITS};
use proptest::prelude::*;

/// Any float: mostly ordinary ones, some of the special ones, some of any bits.
fn float() -> impl Strategy<Value = f32> {
    prop_oneof![
        8 => -4.0_f32..4.0,
        1 => prop::sample::select(vec![
            0.0, -0.0, f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY,
            f32::MIN_POSITIVE, -1e-42, f32::MAX, f32::from_bits(0x7f80_0001),
        ]),
        1 => any::<u32>().prop_map(f32::from_bits),
    ]
}

fn defined(alpha: f32, x: f32, y: f32) -> u32 {
    let value = alpha.mul_add(x, y);
    if value.is_nan() { NAN_BITS } else { value.to_bits() }
}

fn isas() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_supported())
}

proptest! {
    #[test]
    fn every_isa_and_split_gives_the_defined_bits(
        alpha in float(),
        xy in prop::collection::vec((float(), float()), 0..300),
        offset in 0_usize..20,
        cut in 0_usize..300,
    ) {
        let n = xy.len();
        let cut = cut.min(n);
        let wanted: Vec<u32> = xy.iter().map(|&(x, y)| defined(alpha, x, y)).collect();
        // Shifted, so that every alignment occurs.
        let shift = |pick: fn(&(f32, f32)) -> f32| -> Vec<f32> {
            std::iter::repeat_n(7.0, offset).chain(xy.iter().map(pick)).collect()
        };
        let (x, y) = (shift(|p| p.0), shift(|p| p.1));
        let (x, y) = (&x[offset..], &y[offset..]);
        for isa in isas() {
            let mut storage = vec![9.0_f32; n + offset + 1];
            let out = &mut storage[offset..offset + n];
            kernel::write(isa, alpha, &x[..cut], &y[..cut], &mut out[..cut]).unwrap();
            kernel::write(isa, alpha, &x[cut..], &y[cut..], &mut out[cut..]).unwrap();
            prop_assert_eq!(&out.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), &wanted);
            // SAFETY: three slices of n elements, one of them mutable.
            unsafe {
                kernel::write_raw(isa, alpha, n, x.as_ptr(), y.as_ptr(), out.as_mut_ptr(), true);
            }
            prop_assert_eq!(&out.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), &wanted);
            out.copy_from_slice(y);
            kernel::update(isa, alpha, x, out).unwrap();
            prop_assert_eq!(&out.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), &wanted);
            prop_assert!(storage[..offset].iter().chain(&storage[offset + n..]).all(|&v| v == 9.0));
        }
    }

    #[test]
    fn close_to_double_precision(
        alpha in -4.0_f32..4.0,
        xy in prop::collection::vec((-4.0_f32..4.0, -4.0_f32..4.0), 0..200),
    ) {
        let (x, mut y): (Vec<f32>, Vec<f32>) = xy.into_iter().unzip();
        let wanted = kernel::reference(alpha, &x, &y);
        kernel::update(Isa::detect(), alpha, &x, &mut y).unwrap();
        for (y, wanted) in y.iter().zip(wanted) {
            // One rounding: half a unit in the last place.
            prop_assert!((f64::from(*y) - wanted).abs() <= wanted.abs() * f64::from(f32::EPSILON) / 2.0);
        }
    }
}

#[test]
fn an_output_larger_than_the_caches_is_written_whole() {
    let n = kernel::STREAM_BYTES_MIN / size_of::<f32>() + 37;
    let x: Vec<f32> = (0..n).map(|i| (i % 1013) as f32).collect();
    let y: Vec<f32> = (0..n).map(|i| (i % 911) as f32).collect();
    for isa in isas() {
        let mut out = vec![-1.0; n];
        kernel::write(isa, 0.5, &x, &y, &mut out).unwrap();
        let wrong = (0..n).find(|&i| out[i].to_bits() != defined(0.5, x[i], y[i]));
        assert_eq!(wrong, None, "{isa}");
    }
}

#[test]
fn zero_alpha_still_reads_x() {
    let mut y = [1.0];
    kernel::update(Isa::detect(), 0.0, &[f32::INFINITY], &mut y).unwrap();
    assert_eq!(y[0].to_bits(), NAN_BITS);
}

#[test]
fn different_lengths_are_refused_and_named() {
    let mut out = [5.0; 2];
    let error = kernel::write(Isa::Scalar, 1.0, &[1.0; 2], &[1.0; 3], &mut out).unwrap_err();
    assert_eq!(error, SaxpyError::Length { x: 2, name: "y", found: 3 });
    assert!(error.to_string().contains("y has 3"));
    assert_eq!(out, [5.0; 2]);
}
