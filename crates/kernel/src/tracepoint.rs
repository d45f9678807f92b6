//! Where the fields of a tracepoint lie, as the kernel tells it in `events/GROUP/NAME/format`.

use std::ops::Range;

/// Where some fields lie in the bytes of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The number by which the event is told from others.
    pub(crate) id: u16,
    /// In the order in which they were asked for.
    pub(crate) fields: Vec<Range<usize>>,
}

impl Layout {
    /// The layout in a format file, of these fields; `None` if one of them, or the number, is not there.
    pub(crate) fn read(format: &str, names: &[&str]) -> Option<Layout> {
        let id = format.lines().find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok())?;
        let fields = names.iter().map(|name| format.lines().find_map(|line| field(line, name)));
        Some(Layout { id, fields: fields.collect::<Option<_>>()? })
    }

    /// An unsigned number of up to eight bytes in the bytes of an event.
    pub(crate) fn number(&self, field: usize, bytes: &[u8]) -> Option<u64> {
        let found = bytes.get(self.fields.get(field)?.clone())?;
        let mut wide = [0; 8];
        let (from, to) =
            if cfg!(target_endian = "big") { (8_usize.checked_sub(found.len())?, 8) } else { (0, found.len()) };
        wide.get_mut(from..to)?.copy_from_slice(found);
        Some(u64::from_ne_bytes(wide))
    }

    /// The bytes of a field.
    pub(crate) fn bytes<'a>(&self, field: usize, bytes: &'a [u8]) -> Option<&'a [u8]> {
        bytes.get(self.fields.get(field)?.clone())
    }
}

/// `field:pid_t pid; offset:24; size:4; signed:1;`
fn field(line: &str, name: &str) -> Option<Range<usize>> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
    let declared = parts.next()?.split('[').next()?;
    if declared.split_whitespace().next_back()? != name {
        return None;
    }
    let mut value = |key: &str| parts.next()?.strip_prefix(key)?.parse::<usize>().ok();
    let (offset, size) = (value("offset:")?, value("size:")?);
    Some(offset..offset.checked_add(size)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(super) const WAKING: &str = "name: sched_waking\nID: 375\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n";

    #[test]
    fn fields_are_found_by_their_names() {
        let layout = Layout::read(WAKING, &["pid", "common_flags", "comm"]).unwrap();
        assert_eq!(layout, Layout { id: 375, fields: vec![24..28, 2..3, 8..24] });
        let mut bytes = [0_u8; 32];
        bytes[24..28].copy_from_slice(&4711_u32.to_ne_bytes());
        assert_eq!(layout.number(0, &bytes), Some(4711));
        assert_eq!(layout.number(0, &bytes[..27]), None);
        // Wider than a number is.
        assert_eq!(layout.number(2, &bytes), None);
        assert_eq!(layout.bytes(2, &bytes).map(<[u8]>::len), Some(16));
        assert_eq!(Layout::read(WAKING, &["target"]), None);
        assert_eq!(Layout::read("field:int pid;\toffset:0;\tsize:4;", &["pid"]), None);
    }

    proptest! {
        #[test]
        fn any_text_gives_a_layout_or_none(text in ".{0,200}", lines in proptest::collection::vec("field:int pid;.{0,30}", 0..3)) {
            let text = format!("ID: 1\n{text}\n{}", lines.join("\n"));
            if let Some(layout) = Layout::read(&text, &["pid"]) {
                let _ = layout.number(0, &[0; 16]);
            }
        }
    }
}
