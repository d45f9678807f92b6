//! The table, and the same for programs.

use super::row::{Bar, Figure, Row, Unit};
use multigrain_console::table;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// For people: a line for each row and peer, then what else is to be known.
pub(crate) fn text(rows: &[Row], quick: bool) -> String {
    let title = ["row", "ours", "peer", "", "ratio", "of turns", "bar", "holds"];
    let mut lines = vec![title.map(str::to_owned).to_vec()];
    for row in rows {
        let ours = row.median().map_or_else(|| "failed".to_owned(), |cost| shown(row.unit, cost));
        let mut head = Some((row.name.clone(), ours, bar(row.bar), verdict(row, quick)));
        for peer in ordered(row) {
            let (name, ours, bar, holds) = head.take().unwrap_or_default();
            let mut line = vec![name, ours];
            match peer {
                Some(peer) => {
                    line.push(peer.median().map_or_else(|| "missing".to_owned(), |cost| shown(row.unit, cost)));
                    line.push(peer.name.clone());
                    line.push(row.ratio_to(peer).map(|r| format!("{r:.3}")).unwrap_or_default());
                    line.push(
                        row.ratios_of_turns(peer)
                            .map(|r| format!("{:.2} {:.2} {:.2}", r[0], r[1], r[2]))
                            .unwrap_or_default(),
                    );
                }
                None => line.resize(6, String::new()),
            }
            line.extend([bar, holds]);
            lines.push(line);
        }
    }
    let mut text = table::render(&lines, 0);
    text += "\nratio: the peer's median time over ours, above 1 we are faster; of turns: least, median, greatest\n";
    for row in rows {
        for note in &row.notes {
            let _ = writeln!(text, "{}: {note}", row.name);
        }
        for peer in &row.peers {
            if let Some(why) = &peer.missing {
                let _ = writeln!(text, "{}: no figure of {}: {why}", row.name, peer.name);
            }
        }
        if let Some(why) = &row.failed {
            let _ = writeln!(text, "{}: failed: {why}", row.name);
        }
    }
    if quick {
        text += "quick: small sizes; bars are for full sizes and are not judged\n";
    }
    text
}

/// For programs.
pub(crate) fn json(rows: &[Row], quick: bool, threads: u32, rounds: u32) -> Value {
    let rows: Vec<Value> = rows.iter().map(|row| object(row, quick)).collect();
    json!({ "rows": rows, "quick": quick, "threads": threads, "rounds": rounds })
}

fn object(row: &Row, quick: bool) -> Value {
    let value = |cost: Option<f64>| cost.map(|cost| row.unit.value(cost));
    let values = |costs: &[f64]| costs.iter().map(|&cost| row.unit.value(cost)).collect::<Vec<_>>();
    let peer = |p: &Figure| {
        json!({
            "peer": p.name,
            "version": p.version,
            "value": value(p.median()),
            "samples": values(&p.samples),
            "ratio": row.ratio_to(p),
            "ratio_of_turns": row.ratios_of_turns(p).map(|r| json!({ "min": r[0], "median": r[1], "max": r[2] })),
            "missing": p.missing,
        })
    };
    let (bar, kind) = match row.bar {
        Bar::RatioAtLeast(bar) => (Some(bar), Some("ratio at least")),
        Bar::AtMost(bar) => (Some(bar), Some("ours at most")),
        Bar::None => (None, None),
    };
    json!({
        "name": row.name,
        "ours": value(row.median()),
        "unit": row.unit.name(),
        "samples": values(&row.ours),
        "peers": row.peers.iter().map(peer).collect::<Vec<_>>(),
        "ratio": row.fastest().and_then(|p| row.ratio_to(p)),
        "bar": bar,
        "bar_kind": kind,
        "holds": row.holds().filter(|_| !quick),
        "note": row.notes.join("; "),
        "failed": row.failed,
    })
}

/// The peers with the fastest first; at least one line.
fn ordered(row: &Row) -> Vec<Option<&Figure>> {
    let mut peers: Vec<Option<&Figure>> = row.peers.iter().map(Some).collect();
    peers.sort_by(|a, b| {
        let cost = |f: &Option<&Figure>| f.and_then(Figure::median).unwrap_or(f64::INFINITY);
        cost(a).total_cmp(&cost(b))
    });
    if peers.is_empty() {
        peers.push(None);
    }
    peers
}

fn shown(unit: Unit, cost: f64) -> String {
    let value = unit.value(cost);
    let digits = match value.abs() {
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$} {}", unit.name())
}

fn bar(bar: Bar) -> String {
    match bar {
        Bar::RatioAtLeast(bar) => format!("ratio >= {bar}"),
        Bar::AtMost(bar) => format!("ours <= {bar}"),
        Bar::None => "-".to_owned(),
    }
}

fn verdict(row: &Row, quick: bool) -> String {
    match row.holds() {
        _ if quick => "-",
        Some(true) => "yes",
        Some(false) => "NO",
        None => "-",
    }
    .to_owned()
}
