//! Pictures as they come: YUV4MPEG2, or 4:2:0 samples without any header.
//!
//! A reader of its own, since those there are do not tell a stream that ends within a picture from one that ends behind it.
//! The format: a line `YUV4MPEG2` with parameters of one letter each (`W640 H480 F25:1 Ip A1:1 C420jpeg`), then for each
//! picture a line that begins with `FRAME`, and its planes.

use crate::error::Error;
use crate::headers::{Colour, Properties, Ratio};
use crate::picture::Size;
use std::io::{BufRead, ErrorKind, Read};

/// What a stream with header begins with.
const MAGIC: &str = "YUV4MPEG2";

/// No line is longer.
const LINE_MAX: u64 = 4096;

/// Of the first picture so many bytes are asked for at once.
const FIRST_BYTES: usize = 1 << 20;

/// A side may be so long: 1024 macroblocks, more than any level has.
const SIDE_MAX: usize = 16384;

/// More pictures a second, or more seconds a picture, are no video's.
const RATE_MAX: u32 = 100_000;

/// Samples that are wider or higher than so many times as much are no video's, and stop some players.
const ASPECT_MAX: u64 = 100;

/// Both numbers of a rate are at most so large. Then 31 bits, as programs read them, hold the time scale of an MP4 file, that of
/// the stream, which is in fields, and the duration of 31 pictures, by less than which one is shown later than it is decoded.
const RATE_NUMBER_MAX: u32 = 1 << 26;

/// What a stream without header has to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw {
    /// How large pictures are.
    pub size: Size,
    /// Pictures a second.
    pub rate: Ratio,
}

/// Reads pictures.
pub struct Input<'a> {
    from: Box<dyn BufRead + Send + 'a>,
    name: String,
    properties: Properties,
    is_raw: bool,
    pictures: u64,
}

impl std::fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} with {:?}", self.name, self.properties)
    }
}

/// A size that can be encoded, or what is wrong with it.
pub fn checked_size(width: usize, height: usize) -> Result<Size, String> {
    if width == 0 || height == 0 || width > SIDE_MAX || height > SIDE_MAX {
        return Err(format!("has pictures of {width} x {height}; 2 x 2 to {SIDE_MAX} x {SIDE_MAX} can be encoded"));
    }
    if width % 2 + height % 2 > 0 {
        return Err(format!(
            "has pictures of {width} x {height}; H.264 with 4:2:0 has even sides only, so crop or pad it by one"
        ));
    }
    Ok(Size { width, height })
}

/// A rate that streams and files can say: in the least numbers, or nearly so where those are too large. Or what is wrong with it.
fn checked_rate(rate: Ratio) -> Result<Ratio, String> {
    let Ratio { over, under } = rate;
    let most = u64::from(RATE_MAX);
    if over == 0 || u64::from(over) > most * u64::from(under) || u64::from(under) > most * u64::from(over) {
        return Err(format!(
            "is to have {over}:{under} pictures a second; 1:{most} to {most}:1 can be encoded, so say with --rate what is right"
        ));
    }
    Ok(rate.within(RATE_NUMBER_MAX))
}

/// A shape of samples that streams and files can say, in numbers of 16 bits.
fn checked_aspect(aspect: Ratio) -> Result<Ratio, String> {
    let (Ratio { over, under }, most) = (aspect, ASPECT_MAX);
    if u64::from(over) > most * u64::from(under) || u64::from(under) > most * u64::from(over) {
        return Err(format!(
            "samples of {over}:{under}, and players show 1:{most} to {most}:1; say with --sar what they are"
        ));
    }
    Ok(aspect.within(u16::MAX.into()))
}

fn ratio(text: &str) -> Option<Ratio> {
    let (over, under) = text.split_once(':')?;
    Some(Ratio { over: over.parse().ok()?, under: under.parse().ok()? })
}

impl<'a> Input<'a> {
    /// Reads the header; where there is none, what it would say is given. What it says, but for the size, somebody may know
    /// better: `corrected` gets it, and says what is.
    ///
    /// # Errors
    /// The stream cannot be read, is none of pictures, or of such as cannot be encoded: samples are of a shape that players do
    /// not show, or pictures of no video's rate.
    pub fn open(
        from: Box<dyn BufRead + Send + 'a>,
        name: &str,
        raw: Option<Raw>,
        corrected: impl FnOnce(Properties) -> Properties,
    ) -> Result<Input<'a>, Error> {
        // What a header says replaces it.
        let unknown = Raw { size: Size { width: 2, height: 2 }, rate: Ratio { over: 25, under: 1 } };
        let Raw { size, rate } = raw.unwrap_or(unknown);
        let properties = Properties::plain(size, rate);
        let mut input = Input { from, name: name.to_owned(), properties, is_raw: raw.is_some(), pictures: 0 };
        match raw {
            None => {
                let line = input.line()?;
                input.properties = properties_of(&line).map_err(|why| input.refused(why))?;
            }
            Some(_) => input.check_without_header()?,
        }
        let said = input.properties;
        let corrected = corrected(said);
        let aspect =
            corrected.aspect.map(checked_aspect).transpose().map_err(|why| match corrected.aspect == said.aspect {
                true => input.refused(format!("is to have {why}")),
                false => Error::Request(format!("--sar asks for {why}")),
            })?;
        let rate = checked_rate(corrected.rate).map_err(|why| input.refused(why))?;
        input.properties = Properties { size: said.size, rate, aspect, ..corrected };
        Ok(input)
    }

    /// Refuses a header where there is said to be none, which would be encoded as samples.
    fn check_without_header(&mut self) -> Result<(), Error> {
        let mut begin = Vec::new();
        let read = self.from.by_ref().take(MAGIC.len() as u64).read_to_end(&mut begin);
        read.map_err(|e| self.unreadable(e))?;
        if begin == MAGIC.as_bytes() {
            let why = "has a header, and --size is for samples without one; leave out --size";
            return Err(self.refused(why.to_owned()));
        }
        let rest = std::mem::replace(&mut self.from, Box::new(std::io::empty()));
        self.from = Box::new(std::io::Cursor::new(begin).chain(rest));
        Ok(())
    }

    /// What is wrong with it, beginning with a verb, and what to do.
    pub(crate) fn refused(&self, why: String) -> Error {
        Error::Input { name: self.name.clone(), why }
    }

    fn unreadable(&self, source: std::io::Error) -> Error {
        Error::Read { name: self.name.clone(), source }
    }

    /// What is known of the pictures.
    pub fn properties(&self) -> Properties {
        self.properties
    }

    /// A line without its end, as far as it goes.
    fn line(&mut self) -> Result<Vec<u8>, Error> {
        let mut line = Vec::new();
        let read = self.from.by_ref().take(LINE_MAX).read_until(b'\n', &mut line);
        read.map_err(|e| self.unreadable(e))?;
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        Ok(line)
    }

    /// The next picture: its planes one after the other. False where there is none.
    ///
    /// # Errors
    /// The stream cannot be read, ends within the picture, or has something else where one should begin.
    pub fn read(&mut self, picture: &mut Vec<u8>) -> Result<bool, Error> {
        let expected = self.properties.size.bytes();
        if !self.is_raw {
            let line = self.line()?;
            if line.is_empty() {
                let mut rest = [0];
                let more = self.from.read(&mut rest).map_err(|e| self.unreadable(e))?;
                if more == 0 {
                    return Ok(false);
                }
            }
            if line != b"FRAME" && !line.starts_with(b"FRAME ") {
                let number = self.pictures + 1;
                let found = shown(&String::from_utf8_lossy(&line));
                return Err(self.refused(format!(
                    "has \"{found}\" where picture {number} should begin with FRAME; it is damaged, get it again"
                )));
            }
            if line.split(|byte| *byte == b' ').any(is_interlaced) {
                let number = self.pictures + 1;
                return Err(self.refused(format!(
                    "has an interlaced picture, number {number}, and only whole ones can be encoded; deinterlace it"
                )));
            }
        }
        let mut found = 0;
        while found < expected {
            // Whatever size a header says, no more than twice of what came is taken of the memory.
            if found == picture.len() {
                picture.resize(expected.min((2 * found).max(FIRST_BYTES)), 0);
            }
            match self.from.read(&mut picture[found..]) {
                Ok(0) => break,
                Ok(read) => found += read,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(self.unreadable(e)),
            }
        }
        if found == 0 && self.is_raw {
            return Ok(false);
        }
        self.pictures += 1;
        if found < expected {
            let whole = match self.pictures {
                1 => "get the whole file".to_owned(),
                more => format!("get the whole file, or cut it behind picture {}", more - 1),
            };
            let advice = if self.is_raw { format!("correct --size, or {whole}") } else { whole };
            return Err(Error::CutOff { name: self.name.clone(), picture: self.pictures, found, expected, advice });
        }
        Ok(true)
    }
}

/// Whether a parameter of a picture is of two fields: `I`, how it is presented (`1` to `3`: whole, so many times), when its fields are
/// from (`p`: the same time), and how its chroma is sampled.
fn is_interlaced(word: &[u8]) -> bool {
    match word {
        [b'I', rest @ ..] => match rest {
            [_, b'i', ..] | [_, _, b'i', ..] => true,
            [_, b'p', ..] => false,
            [presented, ..] => !matches!(presented, b'1'..=b'3' | b'p' | b'?'),
            [] => false,
        },
        _ => false,
    }
}

/// The begin of something that came, for a message.
fn shown(text: &str) -> String {
    text.chars().take(20).collect::<String>().escape_debug().to_string()
}

/// What makes an input of any video.
const CONVERSION: &str = "ffmpeg -i FILE -pix_fmt yuv420p -f yuv4mpegpipe -";

/// What a header says.
fn properties_of(line: &[u8]) -> Result<Properties, String> {
    let no_header = || {
        format!("does not begin with YUV4MPEG2; make it so ({CONVERSION}), or give --size for samples without header")
    };
    let text = std::str::from_utf8(line).map_err(|_| no_header())?;
    let mut words = text.split(' ');
    if words.next() != Some(MAGIC) {
        return Err(no_header());
    }
    let (mut width, mut height) = (None, None);
    let (mut rate, mut aspect, mut is_full_range) = (Ratio { over: 25, under: 1 }, None, None);
    // As it is without a word of it.
    let mut chroma_place = Some(1);
    for word in words.filter(|word| !word.is_empty()) {
        let mut chars = word.chars();
        let letter = chars.next();
        let value = chars.as_str();
        let wrong = |what: &str| format!("says {} in its header, which is no {what}; get it again", shown(word));
        match letter {
            Some('W') => width = Some(value.parse().map_err(|_| wrong("width"))?),
            Some('H') => height = Some(value.parse().map_err(|_| wrong("height"))?),
            Some('F') => {
                let found = ratio(value).ok_or_else(|| wrong("number of pictures a second"))?;
                // 0:0 says that it is not known.
                if found.over > 0 && found.under > 0 {
                    rate = found;
                }
            }
            Some('A') => {
                let found = ratio(value).ok_or_else(|| wrong("ratio of sides"))?;
                aspect = (found.over > 0 && found.under > 0).then_some(found);
            }
            Some('I') if !matches!(value, "p" | "?") => {
                return Err("is interlaced, and only whole pictures can be encoded; deinterlace it".to_owned());
            }
            Some('C') => {
                chroma_place = Some(match value {
                    "420" | "420jpeg" => 1,
                    "420mpeg2" => 0,
                    // Of fields, that of the first.
                    "420paldv" => 2,
                    _ => {
                        return Err(format!(
                            "has samples {}, and 4:2:0 with 8 bits can be encoded; convert it ({CONVERSION})",
                            shown(value)
                        ));
                    }
                });
            }
            Some('X') => match value {
                "COLORRANGE=FULL" => is_full_range = Some(true),
                "COLORRANGE=LIMITED" => is_full_range = Some(false),
                _ => {}
            },
            _ => {}
        }
    }
    let (Some(width), Some(height)) = (width, height) else {
        return Err("does not say how large its pictures are; get it again".to_owned());
    };
    let (size, colour) = (checked_size(width, height)?, Colour::UNKNOWN);
    Ok(Properties { size, rate, aspect, is_full_range, colour, chroma_place })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Result<(Properties, Vec<Vec<u8>>), Error> {
        let mut input = Input::open(Box::new(bytes), "it", None, |said| said)?;
        let (mut pictures, mut picture) = (Vec::new(), Vec::new());
        while input.read(&mut picture)? {
            pictures.push(picture.clone());
        }
        Ok((input.properties(), pictures))
    }

    fn stream(header: &str, pictures: usize) -> Vec<u8> {
        let mut bytes = format!("{header}\n").into_bytes();
        for i in 0..pictures {
            bytes.extend(b"FRAME\n");
            bytes.extend([i as u8; 24]);
        }
        bytes
    }

    #[test]
    fn a_header_says_what_is_known() {
        let header = "YUV4MPEG2 W4 H4 F30000:1001 Ip A128:117 C420mpeg2 XYSCSS=420MPEG2 XCOLORRANGE=FULL";
        let (properties, pictures) = all(&stream(header, 3)).unwrap();
        let expected = Properties {
            size: Size { width: 4, height: 4 },
            rate: Ratio { over: 30000, under: 1001 },
            aspect: Some(Ratio { over: 128, under: 117 }),
            is_full_range: Some(true),
            colour: Colour::UNKNOWN,
            chroma_place: Some(0),
        };
        assert_eq!(properties, expected);
        assert_eq!(pictures, [vec![0; 24], vec![1; 24], vec![2; 24]]);
    }

    #[test]
    fn what_cannot_be_encoded_is_told() {
        for (header, word) in [
            ("YUV4MPEG2 W4 H5", "even"),
            ("YUV4MPEG2 W0 H4", "0 x 4"),
            ("YUV4MPEG2 W4", "large"),
            ("YUV4MPEG2 W4 H4 It", "deinterlace"),
            ("YUV4MPEG2 W4 H4 C422", "422"),
            ("YUV4MPEG2 W4 H4 C420p10", "420p10"),
            ("YUV4MPEG2 Wx H4", "Wx"),
            ("YUV4MPEG2 W4 H4 F1:2000000000", "1:2000000000"),
            ("YUV4MPEG2 W4 H4 F4294967295:1", "4294967295:1"),
            ("YUV4MPEG2 W4 H4 F4000000000:1001", "100000:1"),
            ("RIFF", "YUV4MPEG2"),
            ("", "YUV4MPEG2"),
        ] {
            let error = all(&stream(header, 1)).unwrap_err();
            assert_eq!(error.exit_status(), 2);
            assert!(error.to_string().contains(word), "{header}: {error}");
        }
    }

    #[test]
    fn pictures_of_two_fields_are_told() {
        for (parameters, is_refused) in [
            ("It", true),
            ("Ib", true),
            ("Iti", true),
            ("ITi", true),
            ("I1pi", true),
            ("I1i", true),
            ("Itp", false),
            ("I1pp", false),
            ("I2", false),
            ("Xsomething I1p?", false),
            ("Xi", false),
        ] {
            let bytes = stream("YUV4MPEG2 W4 H4", 2);
            let second = bytes.len() - 24;
            let bytes = [&bytes[..second - 1], b" ", parameters.as_bytes(), b"\n", &bytes[second..]].concat();
            match all(&bytes) {
                Ok((_, pictures)) => assert!(!is_refused && pictures.len() == 2, "{parameters}"),
                Err(error) => {
                    let text = error.to_string();
                    assert!(is_refused && text.contains("number 2") && text.contains("deinterlace"), "{text}");
                }
            }
        }
    }

    #[test]
    fn rates_are_said_in_numbers_that_fit() {
        for ((over, under), (least, below)) in [
            ((25, 1), (25, 1)),
            ((30000, 1001), (30000, 1001)),
            ((4_000_000_000, 200_000_000), (20, 1)),
            ((100_000, 1), (100_000, 1)),
            ((2, 200_000), (1, 100_000)),
        ] {
            assert_eq!(checked_rate(Ratio { over, under }), Ok(Ratio { over: least, under: below }));
        }
        // Nanoseconds, and the worst there are.
        for (over, under) in [(1_000_000_000, 16_666_667), (u32::MAX, 42_950), (42_950, u32::MAX)] {
            let found = checked_rate(Ratio { over, under }).unwrap();
            assert!(found.over.max(found.under) <= RATE_NUMBER_MAX, "{found:?}");
            let value = |ratio: Ratio| f64::from(ratio.over) / f64::from(ratio.under);
            let error = value(found) / value(Ratio { over, under }) - 1.0;
            assert!(error.abs() < 2e-3, "{over}:{under}: {found:?}");
        }
        for (over, under) in [(100_001, 1), (1, 100_001), (0, 1), (1, 0), (0, 0)] {
            assert!(checked_rate(Ratio { over, under }).is_err());
        }
    }

    #[test]
    fn a_stream_that_is_cut_off_is_told() {
        let whole = stream("YUV4MPEG2 W4 H4", 2);
        for end in 0..whole.len() {
            let pictures = all(&whole[..end]).map(|found| found.1.len());
            let first = whole.len() - 60;
            match pictures {
                Ok(pictures) => assert!(end == first + 30 * pictures || end + 1 == first, "{end} of {}", whole.len()),
                Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
            }
        }
    }

    /// A small generator: the same numbers for the same seed.
    struct Random(u64);

    impl Random {
        fn below(&mut self, most: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) as usize) % most
        }

        fn of<'a>(&mut self, from: &[&'a str]) -> &'a str {
            from[self.below(from.len())]
        }
    }

    /// A stream that is nearly right, or not at all.
    fn fuzzed(seed: u64) -> Vec<u8> {
        const NUMBERS: [&str; 16] = [
            "0",
            "1",
            "2",
            "4",
            "6",
            "16",
            "18",
            "16384",
            "16386",
            "65536",
            "4294967295",
            "4294967296",
            "18446744073709551616",
            "-2",
            "",
            "4x",
        ];
        const CHROMA: [&str; 8] = ["420", "420jpeg", "420mpeg2", "420paldv", "422", "444p10", "mono", ""];
        const WORDS: [&str; 8] = ["Ip", "I?", "It", "XCOLORRANGE=FULL", "XCOLORRANGE=", "X", "\u{fc}", "YUV4MPEG2"];
        let random = &mut Random(seed);
        // Sizes are small ones in most cases, or there would be no pictures.
        let side = |random: &mut Random| if random.below(4) > 0 { "4" } else { random.of(&NUMBERS) };
        let mut words = vec![
            if random.below(20) > 0 { "YUV4MPEG2".to_owned() } else { "YUV4MPEG".to_owned() },
            format!("W{}", side(random)),
            format!("H{}", side(random)),
        ];
        for _ in 0..random.below(5) {
            words.push(match random.below(4) {
                0 => format!("F{}:{}", random.of(&NUMBERS), random.of(&NUMBERS)),
                1 => format!("A{}:{}", random.of(&NUMBERS), random.of(&NUMBERS)),
                2 => format!("C{}", random.of(&CHROMA)),
                _ => random.of(&WORDS).to_owned(),
            });
        }
        let mut bytes = words.join(if random.below(9) > 0 { " " } else { "  " }).into_bytes();
        bytes.push(b'\n');
        for _ in 0..random.below(4) {
            let long = "p".repeat(random.below(2) * 5000);
            bytes.extend(
                match random.below(6) {
                    0 => format!("FRAME I{long}\n"),
                    1 => format!("FRAME{long}"),
                    _ => "FRAME\n".to_owned(),
                }
                .into_bytes(),
            );
            bytes.extend((0..24 - random.below(9) / 8).map(|_| random.below(256) as u8));
        }
        for _ in 0..random.below(3) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[at] = random.below(256) as u8,
                1 => bytes.truncate(at),
                _ => bytes.insert(at, b"\n \0"[random.below(3)]),
            }
            bytes.push(b'x');
        }
        bytes
    }

    /// Whatever comes, there are pictures as large as was said or an error of one line, and no more memory than bytes that came.
    #[test]
    fn whatever_comes_is_read_or_told() {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
        let (first, cases) = (number("MULTIGRAIN_SEED").unwrap_or(1), number("MULTIGRAIN_CASES").unwrap_or(20_000));
        let mut whole = 0;
        for seed in first..first + cases {
            let bytes = fuzzed(seed);
            let context = format!("MULTIGRAIN_SEED={seed} MULTIGRAIN_CASES=1 repeats it: {}", bytes.escape_ascii());
            let read = || -> Result<usize, Error> {
                let (mut input, mut picture, mut count) =
                    (Input::open(Box::new(&bytes[..]), "it", None, |said| said)?, Vec::new(), 0);
                let expected = input.properties().size.bytes();
                while input.read(&mut picture)? {
                    assert_eq!(picture.len(), expected, "{context}");
                    count += 1;
                }
                assert!(picture.capacity() <= FIRST_BYTES.max(2 * bytes.len()), "{context}");
                Ok(count)
            };
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)) {
                Ok(Ok(count)) => whole += usize::from(count > 0),
                Ok(Err(error)) => {
                    let text = error.to_string();
                    assert!(!text.is_empty() && text.chars().all(|c| !c.is_control()), "{context}: {text:?}");
                }
                Err(_) => panic!("{context}"),
            }
        }
        assert!(cases < 100 || whole > 0, "the fuzzed streams are all damaged");
    }
}
