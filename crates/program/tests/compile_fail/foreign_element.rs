//! A foreign type is made an element without a word that its bits may be anything.

use multigrain_program::Element;

#[derive(Clone, Copy, Debug, Default)]
struct Mine(bool);

impl Element for Mine {
    const NAME: &'static str = "mine";
    const DESCR: &'static str = "|u1";
}

fn main() {}
