//! Blocks of arrays in memory to an arena and back, through the trait: also what Miri looks at.

use multigrain_driver::{
    Child, Direction, Driver, DriverName, LocalDriver, Location, Site, Slack, StoreError, Transfer,
};
use multigrain_machine::{Edge, Memory, MemoryId};
use multigrain_program::{ElementType, RawView, Region, Shape};

fn arena(bytes: u64) -> Box<dyn Child> {
    let memory = Memory::child("local", MemoryId(0), 1, bytes, Edge::new(DriverName::LOCAL, 1e9, 0.0));
    let edge = memory.edge.as_ref().unwrap();
    LocalDriver.reserve(&Site { memory: &memory, edge, index: 0, bytes }).unwrap().unwrap()
}

fn moved(arena: &dyn Child, direction: Direction, block: RawView, offset_bytes: u64) -> Result<(), StoreError> {
    let name = || "a block".to_owned();
    let location = Location::Memory(block);
    let transfer = Transfer { direction, location, offset_bytes, slack: Slack::default(), timed: false, name: &name };
    // SAFETY: blocks of vectors of a test, which nobody else uses; what is moved by the worker itself is over at once.
    let receipt = unsafe { arena.issue(&transfer) }?;
    assert!(receipt.is_none(), "who copies itself needs no receipt");
    Ok(())
}

#[test]
fn blocks_go_down_and_up_as_they_lie() {
    for (shape, start, len) in [
        (&[40][..], &[3][..], &[30][..]),
        (&[7, 9], &[2, 1], &[4, 8]),
        (&[7, 9], &[0, 0], &[7, 9]),
        (&[3, 4, 5], &[1, 0, 2], &[2, 3, 3]),
        (&[2, 3, 4, 5], &[0, 1, 1, 0], &[2, 2, 2, 5]),
    ] {
        let count: u64 = shape.iter().product();
        let mut array: Vec<u32> = (0..count as u32).collect();
        let region = Region::new(start, len);
        let whole = RawView::dense(array.as_mut_ptr().cast(), ElementType::U32, Shape::new(shape));
        let (block, bytes) = (whole.part(&region).unwrap(), region.elements() * 4);
        let arena = arena(bytes + 128);
        moved(&*arena, Direction::Read, block, 64).unwrap();
        // SAFETY: the block lies there, aligned to a cache line; nothing is under way.
        let found = unsafe {
            std::slice::from_raw_parts_mut(arena.span().start.add(64).cast::<u32>(), region.elements() as usize)
        };
        let inside = |index: u32| {
            let mut rest = u64::from(index);
            shape.iter().rev().zip(start.iter().zip(len).rev()).all(|(&extent, (&start, &len))| {
                let at = rest % extent;
                rest /= extent;
                (start..start + len).contains(&at)
            })
        };
        let expected: Vec<u32> = (0..count as u32).filter(|index| inside(*index)).collect();
        assert_eq!(found, expected, "{shape:?} {region}");
        found.iter_mut().for_each(|value| *value += 1000);
        moved(&*arena, Direction::Write, block, 64).unwrap();
        let expected: Vec<u32> =
            (0..count as u32).map(|index| if inside(index) { index + 1000 } else { index }).collect();
        assert_eq!(array, expected, "{shape:?} {region}");
    }
}

#[test]
fn what_does_not_lie_in_the_arena_is_refused() {
    let arena = arena(100);
    let mut values = [0u32; 20];
    let block = RawView::dense(values.as_mut_ptr().cast(), ElementType::U32, Shape::new(&[20]));
    moved(&*arena, Direction::Read, block, 20).unwrap();
    let error = moved(&*arena, Direction::Read, block, 24).unwrap_err().to_string();
    assert!(error.contains("bounds") && error.contains("100 bytes"), "{error}");
}
