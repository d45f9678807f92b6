//! Rates of one viewer; behind a link: `link.rs`.

use super::*;
use proptest::prelude::*;

/// Random numbers of a seed (SplitMix64), from 0 to 1.
pub(super) fn random(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ z >> 31) >> 11) as f64 / (1_u64 << 53) as f64
}

#[test]
fn the_equation_has_the_values_of_the_standard() {
    for (p, expected) in [(0.0001, 8172.0), (0.05, 271_305.0), (1.0, 243_315_981.0)] {
        let found = trips_a_packet(p) * 1e6;
        assert!((found / expected - 1.0).abs() < 1e-4, "{p}: {found}");
    }
    // 1200 bytes, 100 ms, 1 %: about 1.3 Mbit/s.
    let rate = 8.0 * throughput(1200.0, 0.1, 0.01);
    assert!((0.9e6..1.4e6).contains(&rate), "{rate}");
    let first = Losses::first(1200.0, 0.1, throughput(1200.0, 0.1, 0.003));
    assert!((first * 0.003 - 1.0).abs() < 1e-6, "{first}");
}

#[test]
fn intervals_are_weighted_and_an_open_one_counts_when_it_is_long() {
    let mut losses = Losses::default();
    assert_eq!(losses.rate(), None);
    losses.event(100.0);
    assert_eq!(losses.rate(), Some(0.01));
    // As many intervals count as have ended (RFC 5348, section 5.4).
    losses.came(1000.0);
    assert_eq!(losses.rate(), Some(0.001));
    losses.open = 0.0;
    for _ in 0..8 {
        losses.came(50.0);
        losses.event(0.0);
    }
    assert!((losses.rate().unwrap() - 0.02).abs() < 1e-12);
    losses.came(10.0);
    assert!((losses.rate().unwrap() - 0.02).abs() < 1e-12);
    losses.came(990.0);
    assert!((losses.rate().unwrap() - 6.0 / (1000.0 + 50.0 * 5.0 - 50.0 * 0.2 + 0.0 * 6.0)).abs() < 0.001);
}

/// A report of RTCP about source 7.
fn report(highest: u32, lost: u32, sender: u32, delay: u32) -> Vec<u8> {
    let mut bytes = vec![0x80, 203, 0, 0, 0x81, 201, 0, 7, 0, 0, 0, 1, 0, 0, 0, 7];
    [lost, highest, 0, sender, delay].iter().for_each(|word| bytes.extend(word.to_be_bytes()));
    bytes
}

#[test]
fn reports_of_players_set_the_rate() {
    let (start, trip) = (Instant::now(), Duration::from_millis(80));
    let mut rate = Rate::new(start);
    let (mut now, mut highest, mut lost) = (start, 0, 0);
    for round in 1..60_u32 {
        rate.reported(round, now);
        (1..=500).for_each(|i| rate.went(1000, now + i * Duration::from_millis(10)));
        now += Duration::from_secs(5);
        highest += 500;
        // Nothing is lost at first, then one of a hundred.
        lost += if round < 10 { 0 } else { 5 };
        let delay = (Duration::from_secs(5) - trip).as_micros() as u64 * 65_536 / 1_000_000;
        let told = Report::of(&report(highest, lost, round, delay as u32), 7).unwrap();
        rate.heard(told, now);
        assert_eq!(rate.limit().is_none(), round < 10);
    }
    let (found, expected) = (rate.limit().unwrap(), throughput(1000.0, 0.08, 0.01));
    assert!((found / expected - 1.0).abs() < 0.1, "{found} instead of {expected}");
    assert!(Report::of(&report(1, 2, 3, 4), 8).is_none());
    // What is allowed comes back with time.
    rate.picture(false, now);
    (0..1000).for_each(|_| rate.went(1000, now));
    assert_eq!(rate.picture(false, now), Share::AtKey);
    assert_eq!(rate.picture(false, now + Duration::from_secs(60)), Share::Goes);
}

/// A report that waited (a program that was stopped, a radio link that slept) tells of no longer way, though it is all there is for
/// five seconds; and what it echoes is no news the second time.
#[test]
fn a_report_that_waited_starves_nobody() {
    for (first, echoes) in [(true, 1), (false, 1), (false, 2), (false, 6)] {
        let (mut now, trip) = (Instant::now(), Duration::from_millis(50));
        let (mut rate, mut highest, mut lost) = (Rate::new(now), 0, 0);
        let mut after = Vec::new();
        for round in 1..40_u32 {
            // Where the viewer gets little, players see one report of the sender's again and again.
            let is_old = (20..20 + echoes).contains(&round);
            if !is_old || round == 20 {
                rate.reported(round, now);
            }
            let waited = if is_old || (first && round == 2) { Duration::from_secs(4) } else { Duration::ZERO };
            let period = Duration::from_secs(5);
            (1..=500).for_each(|i| rate.went(1000, now + i * period / 500));
            now += period;
            (highest, lost) = (highest + 500, lost + 5);
            let sender = if is_old { 20 } else { round };
            let back = period * (round - sender + 1) - trip - waited;
            let delay = (back.as_micros() as u64 * 65_536 / 1_000_000) as u32;
            rate.heard(Report { highest, lost, fraction: 0, sender, delay }, now);
            after.push(rate.limit().unwrap_or(f64::INFINITY));
        }
        let expected = throughput(1000.0, 0.05, 0.01);
        let ratios: Vec<f64> = after.iter().skip(10).map(|limit| limit / expected).collect();
        assert!(ratios.iter().all(|ratio| (0.8..1.25).contains(ratio)), "first {first}, {echoes} echoes: {ratios:.2?}");
    }
}

/// What a receiver counts as lost stops where 24 bits end, with a sign (RFC 3550, A.3) or without (ffmpeg); the part of each report goes on.
#[test]
fn a_full_count_hides_no_loss() {
    for full in [0x7f_ffff_u64, 0xff_ffff] {
        let (mut numbers, mut sequence, mut missing) = (Numbers::default(), 0_u64, 0_u64);
        // Almost as many as can be counted were left out.
        while missing + 60_000 < full {
            numbers.went(sequence as u16);
            (sequence, missing) = (sequence + 30_000, missing + 29_999);
        }
        numbers.went(sequence as u16);
        // Half are left out, and of the others one of twenty is lost: 15 of 600 a report.
        let (mut told, mut seen) = (None, 0);
        for round in 0..600 {
            for _ in 0..300 {
                sequence += 2;
                numbers.went(sequence as u16);
            }
            missing += 315;
            let (highest, fraction) = (sequence as u32, (256 * 315 / 600) as u8);
            let lost = missing.min(full) as u32;
            let packet = report(highest, lost | u32::from(fraction) << 24, 0, 0);
            let only = numbers.only(Report::of(&packet, 7).unwrap()).unwrap();
            let step = only.lost.wrapping_sub(told.replace(only.lost).unwrap_or(only.lost)) as i32;
            seen += if round >= 300 { step } else { 0 };
        }
        assert!((0.85..1.0).contains(&(f64::from(seen) / (300.0 * 15.0))), "{full:x}: {seen}");
    }
}

/// What a viewer tells in its first report was lost, too.
#[test]
fn the_first_report_counts() {
    let start = Instant::now();
    let (mut rate, mut numbers) = (Rate::new(start), Numbers::default());
    for number in 65_500..65_900_u32 {
        numbers.went(number as u16);
        rate.went(1000, start);
    }
    let report = numbers.only(Report { highest: 65_899, lost: 40, fraction: 0, sender: 0, delay: 0 }).unwrap();
    assert_eq!((report.highest, report.lost), (400, 40));
    rate.heard(report, start + Duration::from_secs(4));
    assert!(rate.limit().is_some_and(|limit| (45e3..55e3).contains(&limit)), "{:?}", rate.limit());
    // Whoever counts anew keeps what was found out.
    assert_eq!(rate.limit(), rate.elsewhere(start).limit());
}

/// A viewer that reports nothing gets half as much again and again, until it does.
#[test]
fn who_reports_nothing_gets_less_and_less() {
    let (mut now, mut rate) = (Instant::now(), Rate::new(Instant::now()));
    let (mut sent, mut silent) = (Vec::new(), 0);
    for _ in 0..6 {
        let mut bytes = 0;
        for _ in 0..2000 {
            now += Duration::from_millis(20);
            if rate.picture(false, now) == Share::Goes {
                rate.went(2000, now);
                bytes += 2000;
            }
            silent += u32::from(rate.falls_silent());
        }
        sent.push(bytes / 40);
    }
    assert!(sent[0] > 70_000 && sent.is_sorted_by(|a, b| a >= b) && sent[5] < 20_000, "{sent:?}");
    assert_eq!(silent, 1);
    rate.heard(Report { highest: 1000, lost: 0, fraction: 0, sender: 0, delay: 0 }, now);
    assert_eq!(rate.limit(), None);
}

/// What was sent before the first loss counts from the first report on, however often a player reports.
#[test]
fn the_first_loss_gives_half_of_what_was_sent() {
    for every in [0.05, 0.25, 1.0, 5.0] {
        let (mut now, mut rate) = (Instant::now(), Rate::new(Instant::now()));
        let packets = (every * 500.0) as u32;
        for round in 1..=3 {
            (0..packets).for_each(|_| rate.went(1000, now));
            now += Duration::from_secs_f64(every);
            let lost = if round == 3 { 5 } else { 0 };
            rate.took(Duration::from_millis(50));
            rate.heard(Report { highest: round * packets, lost, fraction: 0, sender: 0, delay: 0 }, now);
        }
        let found = rate.limit().unwrap() / 500_000.0;
        assert!((0.45..0.55).contains(&found), "reports every {every} s: {found} of what was sent");
    }
}

/// Of what is only late, a report tells as lost what has been overtaken when it is made; what stays lost counts, though one at a time.
#[test]
fn what_is_late_is_not_lost() {
    for every in [0.05, 1.0, 5.0] {
        let (mut now, mut rate, mut state) = (Instant::now(), Rate::new(Instant::now()), 7);
        let packets = (every * 100.0) as u32;
        let mut highest = 0;
        let mut report = |rate: &mut Rate, lost: u32| {
            (0..packets).for_each(|_| rate.went(1000, now));
            now += Duration::from_secs_f64(every);
            highest += packets;
            rate.took(Duration::from_millis(50));
            rate.heard(Report { highest, lost, fraction: 0, sender: 0, delay: 0 }, now);
            rate.limit()
        };
        for _ in 0..500 {
            // Seldom two reports in turn find one overtaken that is another.
            let late = if random(&mut state) < 0.3 { 1 + (random(&mut state) * 3.0) as u32 } else { 0 };
            assert_eq!((report(&mut rate, late), report(&mut rate, 0)), (None, None));
        }
        assert!(report(&mut rate, 1).is_none() && report(&mut rate, 1).is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(300)) })]

    /// What was lost on the way is all that counts, whatever was left out.
    #[test]
    fn what_was_not_sent_is_not_lost(
        first in any::<u16>(), fates in prop::collection::vec(0..10_u8, 1..3000), left_out in 0..5_u8, lost in 0..3_u8, every in 50..400_usize,
    ) {
        let (mut numbers, mut highest, mut came, mut gone, mut sent) = (Numbers::default(), None, 0_u32, 0_u32, 0_u32);
        let mut before = None;
        for (i, fate) in fates.iter().enumerate() {
            // The first arrives: players count from there.
            let fate = if i == 0 { 9 } else { *fate };
            if fate >= left_out {
                numbers.went(first.wrapping_add(i as u16));
                sent += 1;
                match fate < left_out + lost {
                    true => gone += 1,
                    false => (highest, came) = (Some(u32::from(first) + i as u32), came + 1),
                }
            }
            let Some(highest) = highest.filter(|last| i % every == 0 && *last == u32::from(first) + i as u32) else { continue };
            let missing = highest - u32::from(first) + 1 - came;
            let told = numbers.only(Report { highest, lost: missing, fraction: 0, sender: 0, delay: 0 }).unwrap();
            if let Some((told_before, gone_before, sent_before)) = before.replace((told, gone, sent)) {
                let told_before: Report = told_before;
                prop_assert_eq!(told.lost.wrapping_sub(told_before.lost), gone - gone_before);
                prop_assert_eq!(told.highest.wrapping_sub(told_before.highest), sent - sent_before);
            }
        }
    }

    /// Whatever receivers report, the rate stays a rate.
    #[test]
    fn lying_receivers_do_no_harm(reports in prop::collection::vec((any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>(), 0..10_000_u64), 1..40)) {
        let mut now = Instant::now();
        let (mut rate, mut numbers) = (Rate::new(now), Numbers::default());
        for (highest, lost, sender, delay, passed) in reports {
            rate.reported(sender, now);
            rate.went((highest % 1500) as usize, now);
            now += Duration::from_millis(passed);
            numbers.went(lost as u16);
            if let Some(report) = numbers.only(Report { highest, lost, fraction: 0, sender, delay }) {
                rate.heard(report, now);
            }
            prop_assert!(rate.limit().is_none_or(|limit| limit.is_finite() && limit > 0.0));
            let _ = rate.picture(lost % 2 == 0, now);
        }
    }

    #[test]
    fn random_reports_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..100), version in any::<bool>()) {
        if let Some(first) = bytes.first_mut().filter(|_| version) {
            *first = 0x81;
        }
        let _ = Report::of(&bytes, 7);
    }
}
