//! Requests that are refused, that are trivial, and that are cut into rounds.

use multigrain_schedule::{
    Algorithm, Area, Copies, Kind, Laws, Operation, Order, Registers, Request, Schedule, ScheduleError, Shape, Step,
    Topology, schedule, schedules,
};

fn request(operation: Operation, name: &str, n: u32, buffer_bytes: u64) -> Request {
    let algorithm = name.parse().unwrap();
    Request { operation, algorithm, topology: Topology::flat(n).unwrap(), buffer_bytes, ring: 4 }
}

fn reduce(root: u32, bytes: u64) -> Operation {
    Operation::Reduce { root, bytes, element_bytes: 4, order: Order::Fixed }
}

#[test]
fn who_is_outside_the_group_is_refused() {
    for operation in [Operation::Broadcast { root: 4, bytes: 8 }, Operation::Broadcast { root: 4, bytes: 0 }] {
        let refusal = schedules(&request(operation, "ATOBcast", 4, 64)).unwrap_err();
        assert_eq!(refusal.to_string(), "root 4 is outside the group: its ranks are 0 to 3");
    }
    let refusal = schedule(&request(Operation::Barrier, "PEBar", 4, 64), 9).unwrap_err();
    assert_eq!(refusal.to_string(), "rank 9 is outside the group: its ranks are 0 to 3");
}

#[test]
fn an_algorithm_of_another_operation_is_refused() {
    let mut wrong = request(Operation::Broadcast { root: 0, bytes: 8 }, "PEBar", 4, 64);
    assert!(matches!(schedules(&wrong), Err(ScheduleError::WrongAlgorithm { .. })));
    wrong.algorithm = Algorithm::plain(Shape::Tree(0));
    assert!(matches!(schedules(&wrong), Err(ScheduleError::Degree { degree: 0, .. })));
}

#[test]
fn operators_are_reordered_only_where_their_laws_allow_it() {
    let refused =
        |associative, commutative| Laws { associative, commutative }.reordered("float sum").unwrap_err().to_string();
    assert!(refused(false, true).starts_with("float sum is not associative, so reordering"));
    assert!(refused(true, false).contains("not commutative"));
    assert!(refused(false, false).contains("neither"));
    assert_eq!(Laws { associative: false, commutative: true }.order(), Order::Fixed);
    assert!(matches!(Laws { associative: true, commutative: true }.order(), Order::Free(_)));
}

#[test]
fn a_group_of_one_has_nothing_to_do_and_keeps_its_own() {
    for kind in Kind::ALL {
        for algorithm in Algorithm::all(kind, &[2]) {
            let operation = match kind {
                Kind::Barrier => Operation::Barrier,
                Kind::Broadcast => Operation::Broadcast { root: 0, bytes: 100 },
                Kind::Reduce => reduce(0, 100),
                Kind::Allreduce => Operation::Allreduce { bytes: 100, element_bytes: 4, order: Order::Fixed },
            };
            let alone = schedule(&request(operation, &algorithm.name(kind), 1, 512), 0).unwrap();
            assert_eq!(alone.steps, []);
            if matches!(kind, Kind::Reduce | Kind::Allreduce) {
                assert_eq!(alone.result, alone.contribution);
            }
        }
    }
}

#[test]
fn nothing_to_move_is_a_barrier() {
    let barrier = schedules(&request(Operation::Barrier, "TTBar(2)", 9, 0)).unwrap();
    for (operation, name) in [
        (Operation::Broadcast { root: 0, bytes: 0 }, "TTBcast(2)"),
        (reduce(0, 0), "TTRed_Opt(2)"),
        (Operation::Allreduce { bytes: 0, element_bytes: 4, order: Order::Fixed }, "TTAllred(2)"),
    ] {
        let nothing = schedules(&request(operation, name, 9, 0)).unwrap();
        for (a, b) in nothing.participants.iter().zip(&barrier.participants) {
            assert_eq!((&a.steps, a.segments.rounds(), a.result), (&b.steps, 1, None));
        }
    }
}

#[test]
fn segments_cover_a_payload_once_in_whole_elements() {
    for (name, n, buffer_bytes) in [
        ("ATORed_Eager", 9, 4096),
        ("TTRed_Eager(2)", 9, 4096),
        ("BTRed_Eager", 33, 8192),
        ("ATORed", 9, 1024),
        ("TTRed_Opt(2)", 9, 1024),
        ("BTRed", 33, 4096),
        ("ATORedB", 2, 48),
        ("TTRed(3)", 64, 777),
    ] {
        for bytes in [4, 16, 44, 48, 52, 1024, 1028, 100_000] {
            let all = schedules(&request(reduce(n / 2, bytes), name, n, buffer_bytes));
            let all = all.unwrap_or_else(|e| panic!("{name} of {n}: {e}"));
            let segments = all.participants[0].segments;
            let mut next = 0;
            for round in 0..segments.rounds() {
                let range = segments.round(round);
                assert_eq!((range.start, range.start % 16), (next, 0));
                assert!(range.end > range.start && (range.end - range.start).is_multiple_of(4));
                next = range.end;
            }
            assert_eq!((next, segments.round(segments.rounds())), (bytes, bytes..bytes));
            for participant in &all.participants {
                areas_are_apart(participant, buffer_bytes);
            }
        }
    }
}

/// All areas of a schedule lie in the participant's memory, none over another.
fn areas_are_apart(schedule: &Schedule, buffer_bytes: u64) {
    let mut areas: Vec<Area> = schedule.contribution.into_iter().chain(schedule.result).collect();
    for step in &schedule.steps {
        match *step {
            Step::Get { target, .. } => areas.push(target),
            Step::Combine { into, left, right } => areas.extend([into, left, right]),
            Step::Put { source, .. } => areas.push(source),
            _ => {}
        }
    }
    let copies = |area: &Area| match area.copies {
        Copies::One => 1,
        Copies::Two => 2,
        Copies::Ring => 4,
    };
    let offsets = |area: &Area| (0..copies(area)).map(|copy| schedule.offset_bytes(*area, copy)).collect::<Vec<_>>();
    let mut begins: Vec<u64> = areas.iter().flat_map(offsets).collect();
    begins.sort_unstable();
    begins.dedup();
    for pair in begins.windows(2) {
        assert!(pair[0] + schedule.segments.segment_bytes() <= pair[1], "{begins:?}");
    }
    let end = begins.last().map_or(0, |begin| begin + schedule.segments.segment_bytes());
    assert!(end <= Schedule::memory_bytes(buffer_bytes), "{begins:?}");
}

#[test]
fn areas_of_exchanged_partial_results_are_apart_too() {
    for n in [2, 3, 5, 8, 13] {
        let operation = Operation::Allreduce { bytes: 1 << 20, element_bytes: 8, order: Order::Fixed };
        for participant in schedules(&request(operation, "PEAllred", n, 65_536)).unwrap().participants {
            areas_are_apart(&participant, 65_536);
        }
    }
}

#[test]
fn a_buffer_without_room_is_refused_with_what_would_do() {
    let refusal = schedules(&request(reduce(0, 64), "ATORed", 9, 127)).unwrap_err();
    let text = "ATORed needs 8 areas of at least 16 bytes each in the buffer of a participant, which has 127 bytes; give \
                it at least 128 bytes, or choose an algorithm with fewer senders a receiver";
    assert_eq!(refusal.to_string(), text);
    assert!(schedules(&request(reduce(0, 64), "ATORed", 9, 128)).is_ok());
    assert!(matches!(schedules(&request(reduce(0, 63), "ATORed", 9, 4096)), Err(ScheduleError::PartElement { .. })));
    let huge = Operation::Reduce { root: 0, bytes: 0, element_bytes: u64::MAX, order: Order::Fixed };
    assert!(schedules(&request(huge, "ATORed", 2, 64)).is_ok());
    let nothing = Operation::Reduce { root: 0, bytes: 4, element_bytes: 0, order: Order::Fixed };
    assert!(matches!(schedules(&request(nothing, "ATORed", 2, 64)), Err(ScheduleError::PartElement { .. })));
    let broad = Operation::Reduce { root: 0, bytes: u64::MAX, element_bytes: u64::MAX, order: Order::Fixed };
    assert!(matches!(schedules(&request(broad, "ATORed", 2, 64)), Err(ScheduleError::BufferTooSmall { .. })));
}

#[test]
fn bits_are_dense_so_trees_of_any_size_fit_one_register() {
    let bits = |name: &str, n| schedules(&request(Operation::Barrier, name, n, 0)).unwrap().bits;
    assert_eq!((bits("ATOBar", 16), bits("ATOBar", 33), bits("TTBar(2)", 5000)), (15, 32, 3));
    assert_eq!((bits("PEBar", 1024), bits("PEBar", 1023)), (10, 10));
    assert_eq!(Registers::CELL.hold(bits("ATOBar", 33)), Ok(()));
    let refusal = Registers::CELL.hold(bits("ATOBar", 34)).unwrap_err();
    assert!(refusal.to_string().contains("awaits 33 senders, but 2 registers"), "{refusal}");
}

#[test]
fn the_blade_variants_send_what_the_paper_says_across_chips() {
    // Gaona et al.: two signals cross for ATOBarB; one message and two signals for the optimised data operations.
    let blade = Topology::packed(16, &[2, 8]).unwrap();
    let cases = [
        (Operation::Barrier, "ATOBarB", 2, 0),
        (Operation::Barrier, "TTBarB(2)", 2, 0),
        (Operation::Broadcast { root: 0, bytes: 128 }, "ATOBcastB_Opt", 2, 1),
        (Operation::Broadcast { root: 11, bytes: 128 }, "TTBcastB_Opt(2)", 2, 1),
        (reduce(0, 128), "ATORedB_Opt", 2, 1),
        (reduce(8, 128), "BTRedB_Opt", 2, 1),
    ];
    for (operation, name, signals, messages) in cases {
        let algorithm = name.parse().unwrap();
        let request = Request { operation, algorithm, topology: blade.clone(), buffer_bytes: 16 << 10, ring: 4 };
        let mut crossing = (0, 0);
        for participant in schedules(&request).unwrap().participants {
            for step in participant.steps {
                match step {
                    Step::Signal { to, .. } | Step::Release { to, .. } if blade.distance(participant.rank, to) > 0 => {
                        crossing.0 += 1;
                    }
                    Step::Put { to: other, .. } | Step::Get { from: other, .. }
                        if blade.distance(participant.rank, other) > 0 =>
                    {
                        crossing.1 += 1;
                    }
                    _ => {}
                }
            }
        }
        assert_eq!(crossing, (signals, messages), "{name}");
    }
}

#[test]
fn segments_of_the_paper_fit_its_buffer() {
    // ATORedB_Opt on 16 SPEs: eight messages of 512 floats fill the 16 KB buffer.
    let request = Request {
        operation: Operation::Reduce {
            root: 0,
            bytes: 2048,
            element_bytes: 4,
            order: Laws { associative: true, commutative: true }.order(),
        },
        algorithm: "ATORedB_Opt".parse().unwrap(),
        topology: Topology::packed(16, &[2, 8]).unwrap(),
        buffer_bytes: 16 << 10,
        ring: 4,
    };
    assert_eq!(schedule(&request, 0).unwrap().segments.segment_bytes(), 2048);
}
