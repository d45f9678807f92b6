//! The hash that tells whether an interrupted run was of the same calls: whatever a call computes with is in it.

use multigrain_plan::hash_calls;
use multigrain_program::notation::around;
use multigrain_program::*;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

struct Windows {
    name: &'static str,
    version: u64,
}

impl Task for Windows {
    type Params = (Read<u64, 1>, Write<u64, 1>);

    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn notation(&self) -> Option<Notation> {
        Some(Notation::axes(["i"]).param("a", [around("i", 1, 1)]).param("b", ["i"]))
    }

    fn leaf(&self, _: (View<'_, u64, 1>, ViewMut<'_, u64, 1>), _: &mut LeafContext<'_>) {}
}

#[test]
fn programs_that_differ_in_one_thing_have_different_hashes() {
    let hash = |(name, version), (len, start), role, scalars: Scalars| {
        let arrays = [ArrayDecl { name: "a".into(), element: ElementType::U64, shape: Shape::new(&[len]), role }];
        let tasks: [Arc<dyn DynTask>; 1] = [Program::erase(Windows { name, version })];
        let arg = |start, len| Arg { array: 0, region: Region::new(&[start], &[len]) };
        let call = Call { task: 0, args: [arg(start, 9), arg(20, 8)].into_iter().collect(), scalars };
        let mut hasher = DefaultHasher::new();
        hash_calls(&arrays, &tasks, &[call], &mut hasher);
        hasher.finish()
    };
    let (task, place, role) = (("windows", 1), (40, 0), Role::InOut);
    let scalars = || Scalars::new().with_u64(3);
    let same = || hash(task, place, role, scalars());
    let others = [
        same(),
        hash(("others", 1), place, role, scalars()),
        hash(("windows", 2), place, role, scalars()),
        hash(task, (41, 0), role, scalars()),
        hash(task, (40, 1), role, scalars()),
        hash(task, place, Role::Output, scalars()),
        hash(task, place, role, Scalars::new()),
        hash(task, place, role, scalars().with_u64(0)),
        // The block has the same elements, of which another is the first that belongs to the axis.
        hash(task, place, role, scalars().with_before(&[1])),
    ];
    assert_eq!(same(), others[0]);
    assert_eq!(others.iter().collect::<BTreeSet<_>>().len(), others.len(), "{others:?}");
}
