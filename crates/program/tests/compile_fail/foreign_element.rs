//! A foreign type is made an element.

use multigrain_program::{Element, ElementType};

#[derive(Clone, Copy, Debug, Default)]
struct Mine(bool);

impl Element for Mine {
    const TYPE: ElementType = ElementType::U8;
}

fn main() {}
