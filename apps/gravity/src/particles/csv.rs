//! Comma-separated particles: a first line with the names of the seven columns in any order, then a particle a line.
//! Blank lines and lines that begin with `#` are skipped. Numbers are decimal; spaces around them are allowed.

use super::{NAMES, PARTICLES_MAX, Particles};

/// What is wrong with a text, and in which line, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvError {
    /// The line, unless the text as a whole is meant.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: String,
}

/// As much of a line as a message shows.
const SHOWN_CHARS: usize = 40;

fn shown(text: &str) -> String {
    let cut: String = text.chars().take(SHOWN_CHARS).collect();
    if cut.len() < text.len() { format!("{cut:?}...") } else { format!("{cut:?}") }
}

/// Parses a text: the particles, and the line of each.
///
/// # Errors
/// What is wrong, and where. Any bytes are allowed in.
pub fn parse(content: &[u8]) -> Result<(Particles, Vec<usize>), CsvError> {
    let mut columns: Option<[usize; 7]> = None;
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    for (number, bytes) in (1..).zip(content.split(|&b| b == b'\n')) {
        let refuse = |problem: String| CsvError { line: Some(number), problem };
        let text = std::str::from_utf8(bytes).map_err(|_| refuse("this is no text in UTF-8".into()))?.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let Some(columns) = &columns else {
            columns = Some(header(text).map_err(refuse)?);
            continue;
        };
        let mut row = [0.0; 7];
        let mut fields = 0;
        for (field, word) in text.split(',').enumerate() {
            fields += 1;
            let Some(column) = columns.iter().position(|&c| c == field) else { continue };
            let word = word.trim();
            row[column] =
                word.parse::<f64>().map_err(|_| refuse(format!("{} = {} is no number", NAMES[column], shown(word))))?;
        }
        if fields != 7 {
            return Err(refuse(format!("it has {fields} fields, 7 are needed, as in the first line")));
        }
        if rows.len() as u64 == PARTICLES_MAX {
            return Err(refuse(format!("at most {PARTICLES_MAX} particles are taken")));
        }
        rows.push(row);
        lines.push(number);
    }
    let whole = |problem: &str| Err(CsvError { line: None, problem: problem.into() });
    match (columns, rows.is_empty()) {
        (None, _) => whole("it is empty; the first line must name the columns: mass,x,y,z,vx,vy,vz"),
        (Some(_), true) => whole("it holds no particles, only the names of the columns"),
        _ => Ok((Particles { rows }, lines)),
    }
}

/// For each of [`NAMES`], the field it stands in.
fn header(text: &str) -> Result<[usize; 7], String> {
    let mut columns = [None; 7];
    for (field, word) in text.split(',').enumerate() {
        let word = word.trim().trim_matches('"');
        let Some(column) = NAMES.iter().position(|name| name.eq_ignore_ascii_case(word)) else {
            return Err(format!("{} is no column; the first line must name mass,x,y,z,vx,vy,vz", shown(word)));
        };
        if columns[column].replace(field).is_some() {
            return Err(format!("column {} is named twice", NAMES[column]));
        }
    }
    let missing: Vec<&str> = NAMES.iter().zip(&columns).filter(|(_, c)| c.is_none()).map(|(name, _)| *name).collect();
    if !missing.is_empty() {
        return Err(format!("column {} is missing; all of mass,x,y,z,vx,vy,vz are needed", missing.join(", ")));
    }
    Ok(columns.map(Option::unwrap_or_default))
}
