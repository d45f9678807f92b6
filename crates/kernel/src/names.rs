//! Who the others are: threads by their numbers, each looked up once, when it is first heard of.

use multigrain_trace::{NO_SUBJECT, Other};
use std::collections::HashMap;

/// Names that are kept: what comes later has none.
const NAMES_MAX: usize = 1 << 16;

/// The others so far.
#[derive(Debug, Default)]
pub(crate) struct Names {
    numbers: HashMap<u32, u32>,
    others: Vec<Other>,
}

impl Names {
    /// The index of a thread among the others.
    pub(crate) fn index(&mut self, thread: u32) -> u32 {
        if let Some(number) = self.numbers.get(&thread) {
            return *number;
        }
        if self.others.len() == NAMES_MAX {
            return NO_SUBJECT;
        }
        let number = self.others.len() as u32;
        self.others.push(looked_up(thread));
        self.numbers.insert(thread, number);
        number
    }

    /// All of them.
    pub(crate) fn into_others(self) -> Vec<Other> {
        self.others
    }
}

/// A name as it may be shown anywhere: who gives it to a thread may put into it what terminals obey.
fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).trim_end().replace(char::is_control, "?")
}

fn looked_up(thread: u32) -> Other {
    let name = match thread {
        0 => Some("idle".to_owned()),
        _ => std::fs::read(format!("/proc/{thread}/comm")).ok().map(|name| shown(&name)),
    };
    // One that has ended already.
    let name = name.unwrap_or_else(|| "ended".to_owned());
    let own = thread != 0 && std::path::Path::new(&format!("/proc/self/task/{thread}")).exists();
    Other { thread, name, own }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_nothing_that_a_terminal_obeys() {
        assert_eq!(shown(b"sh\n"), "sh");
        assert_eq!(shown(b"\x1b[31m a\tb\n"), "?[31m a?b");
        assert_eq!(shown("\u{9b}1m\u{e9}\n".as_bytes()), "?1m\u{e9}");
    }
}
