//! What can be typed, and what is made of it.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, ValueEnum};
use multigrain::strands::Policy;
use multigrain_console::Failure;
use multigrain_encode::encoder::Options;
use multigrain_encode::headers::{Colour, Names, Profile, Properties, Ratio, Structure};
use multigrain_encode::input::{Raw, checked_size};
use multigrain_encode::levels::kept_max;
use multigrain_encode::picture::Size;
use multigrain_encode::rate::{Keys, Rate};
use multigrain_encode::run::Cut;
use multigrain_encode::search::Effort;
use multigrain_simd::Isa;
use std::path::{Path, PathBuf};

/// Encodes a video as H.264 on all processors
///
/// The input is YUV4MPEG2 (`ffmpeg -i FILE -pix_fmt yuv420p -f yuv4mpegpipe -`), or 4:2:0 samples with --size. The result is the
/// same whatever the number of threads and the policy.
#[derive(Parser, Debug)]
#[command(name = "multigrain encode", version, max_term_width = 100, allow_negative_numbers = true)]
pub(crate) struct Args {
    /// The video; - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) input: PathBuf,
    /// Where to: .mp4 (or .m4v), or .h264 (.264, .avc), or - for a stream on standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Quantiser of all pictures; the first, and those at which decoding can begin, have 3 less [default: 26]
    #[arg(long, value_name = "0-51", value_parser = clap::value_parser!(u8).range(0..=51), group = "rate_by")]
    qp: Option<u8>,
    /// Quantiser of pictures of usual change; more where more changes, less where less does
    #[arg(long, value_name = "0-51", value_parser = quality, group = "rate_by")]
    crf: Option<f64>,
    /// Bits a second that the video takes as a whole, 1k to 1000G, such as 800k or 2.5M; a busy second may take three times as many, one behind a quiet scene more
    #[arg(long, value_name = "BITS", value_parser = bits, group = "rate_by")]
    bitrate: Option<f64>,
    /// Pictures from one at which decoding can begin to the next
    #[arg(long, value_name = "N", default_value_t = 250, value_parser = clap::value_parser!(u32).range(1..))]
    keyint: u32,
    /// Decoding does not begin where another scene does
    #[arg(long)]
    no_scenecut: bool,
    /// How thoroughly motion is searched
    #[arg(long, default_value = "medium")]
    preset: Preset,
    /// What players have to be able to do: main takes fewer bits
    #[arg(long, default_value = "baseline")]
    profile: ProfileName,
    /// Pictures in a row that are predicted from one before and one behind them; more than 0 needs main [default: by preset]
    #[arg(long, value_name = "0-16", value_parser = clap::value_parser!(u8).range(0..=16))]
    bframes: Option<u8>,
    /// Pictures that one may be predicted from [default: by preset]
    #[arg(long, value_name = "1-16", value_parser = clap::value_parser!(u8).range(1..=16))]
    refs: Option<u8>,
    /// So many more, each the last of a scene, which may come back; decoding does not begin where another scene does then
    #[arg(long, value_name = "0-15", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=15))]
    long: u8,
    /// The input has no header: columns x rows of its pictures
    #[arg(long, value_name = "WxH", value_parser = size)]
    size: Option<Size>,
    /// Pictures a second, such as 25, 30000/1001 or 29.97, which means that, where the input does not say it (25 then) or is wrong
    #[arg(long, value_name = "N[/M]", value_parser = rate)]
    rate: Option<Ratio>,
    /// Width of a sample over its height, where the input does not say it or is wrong
    #[arg(long, value_name = "N:M", value_parser = ratio)]
    sar: Option<Ratio>,
    /// Whether samples use all values or 16 to 235, where the input does not say it or is wrong
    #[arg(long)]
    range: Option<Range>,
    /// Which colours the primaries are (ITU-T H.273)
    #[arg(long, value_parser = named(Colour::PRIMARIES), hide_possible_values = true, value_name = "NAME, such as bt709")]
    primaries: Option<u8>,
    /// How values follow light (ITU-T H.273)
    #[arg(long, value_parser = named(Colour::TRANSFER), hide_possible_values = true, value_name = "NAME, such as bt709")]
    transfer: Option<u8>,
    /// How luma and chroma are made of red, green and blue (ITU-T H.273)
    #[arg(long, value_parser = named(Colour::MATRIX), hide_possible_values = true, value_name = "NAME, such as bt709")]
    matrix: Option<u8>,
    /// Threads [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// Who decides how many workers share a loop
    #[arg(long, value_name = "POLICY", default_value = "marginal")]
    pub(crate) policy: Policy,
    /// Writes down who computed what when; `multigrain trace FILE` shows it
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Writes the pictures, too, as players show them (4:2:0 samples, planes one after the other), and tells their PSNR
    #[arg(long, value_name = "FILE")]
    pub(crate) recon: Option<PathBuf>,
    /// Prints one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// What is off-loaded, for comparison: rows, or the search of so many macroblocks
    #[arg(long, hide = true, value_name = "rows|N", value_parser = cut, default_value = "rows")]
    pub(crate) cut: Cut,
    /// Instruction set of the kernels, for tests
    #[arg(long, hide = true, value_parser = isa)]
    pub(crate) isa: Option<Isa>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProfileName {
    /// Constrained baseline: what everything plays
    Baseline,
    /// Arithmetic codes
    Main,
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Profile {
        match name {
            ProfileName::Baseline => Profile::Baseline,
            ProfileName::Main => Profile::Main,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Range {
    /// All 256 values
    Full,
    /// Luma from 16 to 235
    Limited,
}

fn named(names: &'static Names) -> impl TypedValueParser<Value = u8> {
    let number = |name: String| names.iter().find(|known| known.0 == name).map_or(2, |known| known.1);
    PossibleValuesParser::new(names.iter().map(|known| known.0)).map(number)
}

/// The quantiser if nothing is said of it.
const QP: u8 = 26;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Preset {
    /// Whole macroblocks only, and no search where one can be skipped
    Fast,
    /// Parts of macroblocks, too
    Medium,
    /// More steps of search, in more pictures
    Slow,
}

impl Preset {
    fn effort(self) -> Effort {
        match self {
            Preset::Fast => Effort { steps: 1, fine: 2, has_parts: false, skips_first: true, enough: 64, intra: 5 },
            Preset::Medium => Effort { steps: 6, fine: 2, has_parts: true, skips_first: false, enough: 48, intra: 6 },
            Preset::Slow => Effort { steps: 16, fine: 3, has_parts: true, skips_first: false, enough: 16, intra: 8 },
        }
    }
}

impl Args {
    /// The input, unless it is standard input.
    pub(crate) fn input(&self) -> Option<&Path> {
        Some(self.input.as_path()).filter(|path| *path != Path::new("-"))
    }

    /// Whether a stream goes to standard output.
    pub(crate) fn is_stream(&self) -> bool {
        self.output == Path::new("-")
    }

    /// What an input without header has to be told.
    pub(crate) fn raw(&self) -> Option<Raw> {
        self.size.map(|size| Raw { size, rate: self.rate.unwrap_or(Ratio { over: 25, under: 1 }) })
    }

    /// What is known of the pictures, and what is said of them instead.
    pub(crate) fn properties(&self, found: Properties) -> Properties {
        Properties {
            rate: self.rate.unwrap_or(found.rate),
            aspect: self.sar.or(found.aspect),
            is_full_range: self.range.map(|range| range == Range::Full).or(found.is_full_range),
            colour: Colour {
                primaries: self.primaries.unwrap_or(found.colour.primaries),
                transfer: self.transfer.unwrap_or(found.colour.transfer),
                matrix: self.matrix.unwrap_or(found.colour.matrix),
            },
            ..found
        }
    }

    /// Bits a second that were asked for.
    pub(crate) fn bits(&self) -> Option<f64> {
        self.bitrate
    }

    /// How pictures of a size are to be encoded.
    ///
    /// # Errors
    /// No player could show them.
    pub(crate) fn options(&self, size: Size) -> Result<Options, Failure> {
        let rate = match (self.crf, self.bitrate) {
            (Some(quality), _) => Rate::Quality(quality),
            (None, Some(bits)) => Rate::Bits(bits),
            (None, None) => Rate::Constant(self.qp.unwrap_or(QP)),
        };
        let structure = self.structure(size)?;
        let keys = Keys { interval: self.keyint, at_cuts: !self.no_scenecut && structure.long == 0 };
        Ok(Options { rate, keys, effort: self.preset.effort(), profile: self.profile.into(), structure })
    }

    /// What pictures may be predicted from: what is asked for, else what the preset has.
    fn structure(&self, size: Size) -> Result<Structure, Failure> {
        let most = kept_max(size);
        let (bidirectional, references) = match (self.profile, self.preset) {
            (ProfileName::Main, Preset::Medium) if most > 1 => (2, 1),
            (ProfileName::Main, Preset::Slow) if most > 1 => (2, most.min(3)),
            (ProfileName::Baseline, Preset::Slow) => (0, most.min(3)),
            _ => (0, 1),
        };
        // Between a picture at which decoding can begin and the next there has to be one that they are predicted from.
        let (bidirectional, references) = match self.keyint {
            1 => (0, 1),
            2 => (0, references),
            _ => (bidirectional, references),
        };
        let wanted = [("bframes", self.bframes, 0, 3), ("refs", self.refs, 1, 2), ("long", Some(self.long), 0, 3)];
        for (name, value, least, keyint) in wanted {
            if let Some(value) = value.filter(|value| *value > least && self.keyint < keyint) {
                return Err(Failure::Request(format!(
                    "--{name} {value} does nothing with --keyint {}, where too few pictures are predicted from others; give --keyint \
                     {keyint} or more, or leave one out",
                    self.keyint
                )));
            }
        }
        let bidirectional = self.bframes.map_or(bidirectional, usize::from);
        if bidirectional > 0 && matches!(self.profile, ProfileName::Baseline) {
            return Err(Failure::Request(format!(
                "--bframes {bidirectional} is more than players of the baseline profile can do; add --profile main"
            )));
        }
        let references = self.refs.map_or(references, usize::from);
        let structure = Structure { references, long: self.long.into(), bidirectional };
        if structure.kept() > most {
            return Err(Failure::Request(format!(
                "players keep {most} pictures of {} x {} at most, and {} were to be kept; give smaller --refs, --long and --bframes",
                size.width,
                size.height,
                structure.kept()
            )));
        }
        Ok(structure)
    }
}

fn isa(name: &str) -> Result<Isa, String> {
    Isa::ALL.into_iter().find(|isa| isa.name() == name).ok_or_else(|| Isa::ALL.map(Isa::name).join(", "))
}

fn cut(text: &str) -> Result<Cut, String> {
    let count = text.parse().ok().filter(|count| *count > 0).map(Cut::Macroblocks);
    count.or_else(|| (text == "rows").then_some(Cut::Rows)).ok_or_else(|| "rows, or a number of macroblocks".into())
}

fn size(text: &str) -> Result<Size, String> {
    let sides = text.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
    let (width, height) = sides.ok_or("columns x rows, such as 640x480")?;
    checked_size(width, height).map_err(|why| why.replacen("has pictures of ", "", 1))
}

fn quality(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value| (0.0..=51.0).contains(value));
    value.ok_or_else(|| "a number from 0 to 51".into())
}

fn bits(text: &str) -> Result<f64, String> {
    let units = [('k', 1e3), ('K', 1e3), ('M', 1e6), ('G', 1e9)];
    let with_unit = units.into_iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)));
    let (number, unit) = with_unit.unwrap_or((text, 1.0));
    let value = number.parse().ok().map(|number: f64| number * unit).filter(|value| (1e3..=1e12).contains(value));
    value.ok_or_else(|| "bits a second, from 1k to 1000G, such as 800k or 2.5M".into())
}

fn ratio(text: &str) -> Result<Ratio, String> {
    let (over, under) = text.split_once([':', '/']).unwrap_or((text, "1"));
    let ratio = over.parse().ok().zip(under.parse().ok()).filter(|(over, under)| *over > 0 && *under > 0);
    ratio.map(|(over, under)| Ratio { over, under }).ok_or_else(|| "a fraction such as 4:3".into())
}

/// Rates that are written with two or three digits, in thousandths of 1001ths.
const ROUNDED: [(&str, u32); 7] =
    [("23.976", 24), ("23.98", 24), ("29.97", 30), ("47.95", 48), ("47.952", 48), ("59.94", 60), ("119.88", 120)];

fn rate(text: &str) -> Result<Ratio, String> {
    if let Some((_, thousands)) = ROUNDED.iter().find(|(name, _)| *name == text) {
        return Ok(Ratio { over: 1000 * thousands, under: 1001 });
    }
    // Digits behind a point are as many powers of ten.
    let decimal = text.split_once('.').and_then(|(whole, digits)| {
        let under = 10_u32.checked_pow(digits.len().try_into().ok()?)?;
        Some(format!("{whole}{digits}:{under}"))
    });
    ratio(decimal.as_deref().unwrap_or(text))
        .map_err(|_| "a number such as 25 or 29.97, or a fraction such as 30000/1001".into())
}
