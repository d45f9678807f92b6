//! The algebra of regions against the cells that they consist of, and views against plain indexing.

use multigrain_program::{ElementType, RawView, Region, Shape, View, ViewMut, blocks};
use proptest::prelude::*;
use std::collections::BTreeSet;

type Cell = Vec<u64>;

fn cells(region: &Region) -> BTreeSet<Cell> {
    let mut all = vec![Vec::new()];
    for d in 0..region.rank() {
        all = all
            .into_iter()
            .flat_map(|cell: Cell| (region.start()[d]..region.end(d)).map(move |i| [&cell[..], &[i]].concat()))
            .collect();
    }
    all.into_iter().collect()
}

fn regions(rank: usize) -> impl Strategy<Value = Region> {
    (prop::collection::vec(0..4u64, rank), prop::collection::vec(0..4u64, rank)).prop_map(|(s, l)| Region::new(&s, &l))
}

fn pairs() -> impl Strategy<Value = (Region, Region)> {
    (1..=4usize).prop_flat_map(|rank| (regions(rank), regions(rank)))
}

/// An array's shape and a region that lies in it.
fn inside() -> impl Strategy<Value = (Shape, Region)> {
    (1..=4usize).prop_flat_map(|rank| {
        prop::collection::vec((0..3u64, 1..4u64, 0..3u64), rank).prop_map(|dims| {
            let shape: Vec<u64> = dims.iter().map(|(s, l, rest)| s + l + rest).collect();
            let start: Vec<u64> = dims.iter().map(|d| d.0).collect();
            let len: Vec<u64> = dims.iter().map(|d| d.1).collect();
            (Shape::new(&shape), Region::new(&start, &len))
        })
    })
}

/// Position of a cell in a row-major array.
fn offset(shape: Shape, cell: &[u64]) -> u64 {
    shape.dims().iter().zip(cell).fold(0, |at, (n, i)| at * n + i)
}

proptest! {
    #[test]
    fn regions_are_sets_of_cells((a, b) in pairs()) {
        let (in_a, in_b) = (cells(&a), cells(&b));
        prop_assert_eq!(a.elements(), in_a.len() as u64);
        prop_assert_eq!(a.is_empty(), in_a.is_empty());
        let both: BTreeSet<Cell> = in_a.intersection(&in_b).cloned().collect();
        if !a.is_empty() && !b.is_empty() {
            prop_assert_eq!(a.intersects(&b), !both.is_empty());
            prop_assert_eq!(a.contains(&b), in_b.is_subset(&in_a));
            prop_assert_eq!(a.intersection(&b).map(|r| cells(&r)).unwrap_or_default(), both);
        }
        let shifted: BTreeSet<Cell> =
            in_a.iter().map(|cell| cell.iter().zip(b.start()).map(|(i, s)| i + s).collect()).collect();
        prop_assert_eq!(cells(&a.within(&b)), shifted);
    }

    #[test]
    fn fragments_are_the_maximal_runs((shape, region) in inside()) {
        let offsets: Vec<u64> = cells(&region).iter().map(|cell| offset(shape, cell)).collect();
        let (count, run) = region.fragments(shape);
        prop_assert_eq!(count * run, region.elements());
        for piece in offsets.chunks(run as usize) {
            prop_assert_eq!(piece[piece.len() - 1] - piece[0], run - 1, "a fragment is contiguous");
        }
    }

    #[test]
    fn pieces_are_the_region_in_order((shape, region) in inside(), most in 0..30u64) {
        let pieces: Vec<Region> = region.pieces(most).collect();
        prop_assert!(pieces.iter().all(|piece| piece.elements() <= most.max(1) && !piece.is_empty()));
        let all: Vec<u64> = pieces.iter().flat_map(|p| (0..p.elements()).map(|i| p.element(i, shape))).collect();
        let whole: Vec<u64> = cells(&region).iter().map(|cell| offset(shape, cell)).collect();
        prop_assert_eq!(all, whole);
        // No more pieces than need be: two neighbours along the last cut dimension do not fit one.
        prop_assert!(most < region.elements() || pieces.len() == 1);
    }

    #[test]
    fn parts_of_views_see_their_cells((shape, region) in inside()) {
        if shape.rank() == 3 {
            let mut memory: Vec<f32> = (0..shape.elements()).map(|i| i as f32).collect();
            let raw = RawView::dense(memory.as_mut_ptr().cast(), ElementType::F32, shape).part(&region).unwrap();
            // SAFETY: the part lies in `memory`, which is used through this view alone.
            let view = unsafe { View::<f32, 3>::from_raw(&raw) };
            let mut expected = cells(&region).into_iter().map(|cell| offset(shape, &cell) as f32);
            for i in 0..view.len(0) {
                for j in 0..view.len(1) {
                    for found in view.row(&[i, j]) {
                        prop_assert_eq!(Some(*found), expected.next());
                    }
                }
            }
            prop_assert_eq!(expected.next(), None);
            if let Some(all) = view.as_slice() {
                prop_assert_eq!(all.len() as u64, region.elements());
                prop_assert_eq!(region.fragments(shape).0, 1);
            }
            // SAFETY: as above; `view` is not used any more.
            let mut view = unsafe { ViewMut::<f32, 3>::from_raw(&raw) };
            for i in 0..view.len(0) {
                for j in 0..view.len(1) {
                    view.row_mut(&[i, j]).fill(-1.0);
                }
            }
            let inside = cells(&region);
            for cell in cells(&Region::whole(shape)) {
                let at = offset(shape, &cell) as usize;
                prop_assert_eq!(memory[at], if inside.contains(&cell) { -1.0 } else { at as f32 });
            }
        }
    }

    #[test]
    fn blocks_cover_an_axis(extent in 0..200u64, step in 0..50u64) {
        let all: Vec<u64> = blocks(extent, step).flat_map(|(start, len)| start..start + len).collect();
        prop_assert_eq!(all, (0..extent).collect::<Vec<_>>());
        prop_assert!(blocks(extent, step).all(|(_, len)| len > 0 && len <= step.max(1)));
    }
}

#[test]
#[should_panic(expected = "row 3 of 3")]
fn rows_outside_a_view_are_refused() {
    let mut memory = [0f32; 12];
    let raw = RawView::dense(memory.as_mut_ptr().cast(), ElementType::F32, Shape::new(&[3, 4]));
    // SAFETY: the view covers `memory`, which is used through it alone.
    let view = unsafe { View::<f32, 2>::from_raw(&raw) };
    view.row(&[3]);
}

#[test]
#[should_panic(expected = "rank of a block")]
fn ranks_of_views_are_checked() {
    let mut memory = [0f32; 12];
    let raw = RawView::dense(memory.as_mut_ptr().cast(), ElementType::F32, Shape::new(&[3, 4]));
    // SAFETY: the rank is refused before anything is accessed.
    let _ = unsafe { View::<f32, 1>::from_raw(&raw) };
}

#[test]
#[should_panic(expected = "elements of a block")]
fn elements_of_views_are_checked() {
    let mut memory = [0f32; 12];
    let raw = RawView::dense(memory.as_mut_ptr().cast(), ElementType::F32, Shape::new(&[3, 4]));
    // SAFETY: the type is refused before anything is accessed.
    let _ = unsafe { View::<f64, 2>::from_raw(&raw) };
}

#[test]
#[should_panic(expected = "a block of float32 at")]
fn alignment_of_views_is_checked() {
    let mut memory = [0f32; 12];
    let odd = memory.as_mut_ptr().cast::<u8>().wrapping_add(1);
    let raw = RawView::dense(odd, ElementType::F32, Shape::new(&[11]));
    // SAFETY: the address is refused before anything is accessed.
    let _ = unsafe { ViewMut::<f32, 1>::from_raw(&raw) };
}

#[test]
fn parts_outside_of_a_block_are_none() {
    let mut memory = [0f32; 12];
    let raw = RawView::dense(memory.as_mut_ptr().cast(), ElementType::F32, Shape::new(&[3, 4]));
    let (two, three) = (Region::new(&[1, 1], &[2, 2]), Region::new(&[0, 0, 0], &[1, 1, 1]));
    assert!(raw.part(&two).is_some() && raw.part(&three).is_none());
    for (start, len) in [([2, 0], [2, 1]), ([0, 3], [1, 2]), ([u64::MAX, 0], [2, 1]), ([0, u64::MAX - 1], [1, 4])] {
        assert!(raw.part(&Region::new(&start, &len)).is_none());
        assert!(raw.part(&two).unwrap().part(&Region::new(&start, &len)).is_none());
    }
    assert!(raw.part(&two).unwrap().part(&Region::new(&[0, 0], &[2, 3])).is_none(), "inside the outer block only");
}
