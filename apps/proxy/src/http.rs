//! What is answered over HTTP: metrics, and what is flowing.

use crate::text::{reason, write};
use crate::worker::Shared;
use serde_json::json;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

/// Answers a request with all of a response; the connection ends with it.
pub fn answer(shared: &Shared, method: &str, target: &str) -> Vec<u8> {
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    if method != "GET" {
        return whole(405, "text/plain", "only GET is answered\n");
    }
    match path {
        "/metrics" => whole(200, "text/plain; version=0.0.4", &metrics(shared)),
        "/streams" => whole(200, "application/json", &streams(shared)),
        _ => whole(404, "text/plain", "there are /metrics and /streams\n"),
    }
}

fn whole(status: u16, kind: &str, content: &str) -> Vec<u8> {
    let line = format!("HTTP/1.1 {status} {}", reason(status));
    let headers = [
        ("Content-Type", kind),
        ("Connection", "close"),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
    ];
    write(&line, &headers, content.as_bytes())
}

/// Prometheus's text format, version 0.0.4.
fn metrics(shared: &Shared) -> String {
    let mut text = String::new();
    let mut one = |name: &str, kind: &str, help: &str, values: &[(String, u64)]| {
        let _ = writeln!(text, "# HELP multigrain_proxy_{name} {help}\n# TYPE multigrain_proxy_{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(text, "multigrain_proxy_{name}{labels} {value}");
        }
    };
    let label = |name: &str| format!("{{stream=\"{name}\"}}");
    let all: Vec<_> = shared.streams.iter().map(|stream| (label(stream.name()), stream.counts.all())).collect();
    if let Some((_, first)) = all.first() {
        for (index, (name, help, _)) in first.iter().enumerate() {
            let values: Vec<_> = all.iter().map(|(label, counts)| (label.clone(), counts[index].2)).collect();
            one(&format!("{name}_total"), "counter", help.trim(), &values);
        }
    }
    let flowing =
        |s: &std::sync::Arc<crate::stream::Stream>| (label(s.name()), u64::from(s.is_flowing.load(Ordering::Relaxed)));
    one(
        "flowing",
        "gauge",
        "Whether packets come from the source",
        &shared.streams.iter().map(flowing).collect::<Vec<_>>(),
    );
    let none = String::new;
    one("viewers", "gauge", "Viewers that play", &[(none(), shared.viewers() as u64)]);
    let refused = shared.refused.load(Ordering::Relaxed);
    one("refused_total", "counter", "Connections and viewers that were refused", &[(none(), refused)]);
    text
}

/// What is flowing, for programs and for the page.
fn streams(shared: &Shared) -> String {
    let one = |stream: &std::sync::Arc<crate::stream::Stream>| {
        let told = stream.told().clone();
        let tracks: Vec<_> = told
            .description
            .iter()
            .flat_map(|d| &d.tracks)
            .map(|t| json!({"media": t.media, "encoding": t.encoding}))
            .collect();
        let counts: serde_json::Map<_, _> =
            stream.counts.all().into_iter().map(|(name, _, count)| (name.to_owned(), count.into())).collect();
        json!({
            "name": stream.name(),
            "source": stream.source.address.to_string(),
            "is_flowing": stream.is_flowing.load(Ordering::Relaxed),
            "trouble": told.trouble,
            "tracks": tracks,
            "counts": counts,
        })
    };
    let streams: Vec<_> = shared.streams.iter().map(one).collect();
    format!("{}\n", json!({ "viewers": shared.viewers(), "streams": streams }))
}
