//! What is answered over HTTP: metrics, and what is flowing.

use crate::session::Found;
use crate::shared::Shared;
use crate::text::{reason, write};
use crate::ts;
use serde_json::json;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

/// What is answered to a request.
pub enum Answer {
    /// A response that is all there is.
    Whole(Vec<u8>),
    /// The transport stream of that stream, without an end.
    Stream(usize),
}

/// Answers a request; the connection ends with the response.
pub fn answer(shared: &Shared, method: &str, target: &str) -> Answer {
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    let text = |status, text: &str| Answer::Whole(whole(status, "text/plain", text));
    if method != "GET" {
        return text(405, "only GET is answered\n");
    }
    if let Some(name) = path.strip_prefix('/').and_then(|path| path.strip_suffix(".ts")) {
        return match shared.find(name) {
            Found::Nothing => text(404, "there is no such stream; /streams tells which there are\n"),
            Found::NotYet => text(503, "its source does not play; /streams tells why\n"),
            Found::Stream { index, description, .. } => match ts::can_hold(&description) {
                true => Answer::Stream(index),
                false => {
                    text(404, "a transport stream holds H.264, H.265, AAC and Opus, and it has none; ask by RTSP\n")
                }
            },
        };
    }
    match path {
        "/" => Answer::Whole(whole(200, "text/html; charset=utf-8", include_str!("page.html"))),
        "/metrics" => Answer::Whole(whole(200, "text/plain; version=0.0.4", &metrics(shared))),
        "/streams" => Answer::Whole(whole(200, "application/json", &streams(shared))),
        _ => text(404, "there are /, /streams, /metrics and /NAME.ts\n"),
    }
}

/// What comes before a transport stream, which ends with the connection.
pub fn stream_head() -> Vec<u8> {
    let headers = [("Content-Type", "video/mp2t"), ("Connection", "close"), ("Cache-Control", "no-store")];
    write("HTTP/1.1 200 OK", &headers, &[])
}

/// What is answered where there are too many viewers.
pub fn full() -> Vec<u8> {
    whole(503, "text/plain", "there are as many viewers as there may be; ask again later\n")
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
    one("viewers", "gauge", "Viewers that play", &[(none(), shared.counts.viewers() as u64)]);
    let refused = shared.counts.refused();
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
    format!("{}\n", json!({ "viewers": shared.counts.viewers(), "streams": streams }))
}
