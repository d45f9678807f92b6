//! The instruction sets that a leaf kernel is written for, and the choice among them at run time.

use std::fmt;

/// An instruction set that a leaf kernel is written for.
///
/// Every kernel gives the same bits with each of them, so the choice is one of speed only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    /// Plain Rust, one element at a time; runs everywhere.
    Scalar,
    /// AArch64, all of which has NEON: 4 lanes of `f32`.
    Neon,
    /// x86-64 with AVX2, FMA, POPCNT, BMI1 and BMI2, which come together: 8 lanes of `f32`.
    Avx2,
    /// x86-64 with AVX-512 F, VL, DQ and BW: 16 lanes of `f32`.
    Avx512,
}

impl Isa {
    /// All of them, from the plainest to the widest.
    pub const ALL: [Isa; 4] = [Isa::Scalar, Isa::Neon, Isa::Avx2, Isa::Avx512];

    /// The widest instruction set that this processor executes.
    #[must_use]
    pub fn detect() -> Isa {
        Isa::ALL.into_iter().rfind(|isa| isa.is_supported()).unwrap_or(Isa::Scalar)
    }

    /// Whether this processor, and the operating system on it, execute the instruction set.
    #[must_use]
    pub fn is_supported(self) -> bool {
        match self {
            Isa::Scalar => true,
            Isa::Neon => cfg!(target_arch = "aarch64"),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("popcnt")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                Isa::Avx2.is_supported()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512bw")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx512 => false,
        }
    }

    /// The name used in reports: `scalar`, `neon`, `avx2` or `avx512`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Neon => "neon",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
