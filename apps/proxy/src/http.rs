//! What is answered over HTTP: metrics, and what is flowing.

use crate::form::Form;
use crate::session::Found;
use crate::shared::Shared;
use crate::stream::Stream;
use crate::text::{Headers, reason, write};
use crate::{auth, ts, websocket};
use serde_json::json;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What is answered to a request.
pub enum Answer {
    /// A response that is all there is.
    Whole(Vec<u8>),
    /// What is in that log, without an end.
    Stream(usize),
    /// The same by WebSocket, behind this response.
    Upgrade(usize, Vec<u8>),
}

/// Answers a request; the connection ends with the response.
pub fn answer(shared: &Shared, may: &auth::Streams, method: &str, target: &str, headers: &Headers) -> Answer {
    // As a proxy would be asked (RFC 9112, section 3.2.2).
    let whole_url = target.split_once("://").filter(|(scheme, _)| scheme.eq_ignore_ascii_case("http"));
    let target = whole_url.map_or(target, |(_, rest)| rest.find('/').map_or("/", |at| &rest[at..]));
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    let text = |status, text: &str| Answer::Whole(whole(status, "text/plain", text));
    if method == "HEAD" {
        // The same without its content (RFC 9110, section 9.3.2).
        let mut head = match answer(shared, may, "GET", target, headers) {
            Answer::Whole(whole) => whole,
            Answer::Stream(feed) => stream_head(Form::of(feed).0),
            Answer::Upgrade(..) => whole(400, "text/plain", ""),
        };
        let end = head.windows(4).position(|bytes| bytes == b"\r\n\r\n").map_or(head.len(), |at| at + 4);
        head.truncate(end);
        return Answer::Whole(head);
    }
    if method != "GET" {
        let line = format!("HTTP/1.1 405 {}", reason(405));
        let headers = [("Allow", "GET, HEAD"), ("Content-Type", "text/plain"), ("Connection", "close")];
        return Answer::Whole(write(&line, &headers, b"only GET and HEAD are answered\n"));
    }
    let forms = [(".ts", Form::Transport), (".mp4", Form::Fragments), (".ws", Form::Messages)];
    let asked = forms.iter().find_map(|(end, form)| Some((path.strip_prefix('/')?.strip_suffix(end)?, *form)));
    if let Some((name, form)) = asked {
        return match shared.find(name, may) {
            Found::Nothing => text(404, "there is no such stream; /streams tells which there are\n"),
            Found::NotYet => text(503, "its source does not play; /streams tells why\n"),
            Found::Stream { index, description, .. } => match ts::can_hold(&description) {
                true if form == Form::Messages => match websocket::accept(headers) {
                    Some(response) => Answer::Upgrade(form.feed(index), response),
                    None => {
                        text(400, "this is for WebSocket, asked for by a page of this place; /NAME.mp4 is the same\n")
                    }
                },
                true => Answer::Stream(form.feed(index)),
                false => text(404, "over HTTP go H.264, H.265, AAC and Opus, and it has none; ask by RTSP\n"),
            },
        };
    }
    match path {
        "/" => Answer::Whole(whole(200, "text/html; charset=utf-8", include_str!("page.html"))),
        "/metrics" => Answer::Whole(whole(200, "text/plain; version=0.0.4", &metrics(shared, may))),
        "/streams" => Answer::Whole(whole(200, "application/json", &streams(shared, may))),
        _ => text(404, "there are /, /streams, /metrics, /NAME.ts, /NAME.mp4 and /NAME.ws\n"),
    }
}

/// What is answered to who has not said who it is.
pub fn unknown(challenges: &[String]) -> Vec<u8> {
    let mut headers: Vec<(&str, &str)> = challenges.iter().map(|text| ("WWW-Authenticate", text.as_str())).collect();
    headers.extend([("Content-Type", "text/plain"), ("Connection", "close"), ("Cache-Control", "no-store")]);
    write(&format!("HTTP/1.1 401 {}", reason(401)), &headers, b"a name and a password are needed\n")
}

/// What is answered to a half of a tunnel that has no other.
pub fn untunnelled() -> Vec<u8> {
    whole(400, "text/plain", "of RTSP over HTTP, GET comes first and POST from the same address with the same cookie\n")
}

/// What comes before a stream, which ends with the connection.
pub fn stream_head(form: Form) -> Vec<u8> {
    let kind = if form == Form::Transport { "video/mp2t" } else { "video/mp4" };
    let headers = [("Content-Type", kind), ("Connection", "close"), ("Cache-Control", "no-store")];
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
fn metrics(shared: &Shared, may: &auth::Streams) -> String {
    let mut text = String::new();
    let mut one = |name: &str, kind: &str, help: &str, values: &[(String, u64)]| {
        let _ = writeln!(text, "# HELP multigrain_proxy_{name} {help}\n# TYPE multigrain_proxy_{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(text, "multigrain_proxy_{name}{labels} {value}");
        }
    };
    let label = |name: &str| format!("{{stream=\"{name}\"}}");
    let streams: Vec<_> = served(shared, may);
    let all: Vec<_> = streams.iter().map(|stream| (label(stream.name()), stream.counts.all())).collect();
    if let Some((_, first)) = all.first() {
        for (index, (name, help, _)) in first.iter().enumerate() {
            let values: Vec<_> = all.iter().map(|(label, counts)| (label.clone(), counts[index].2)).collect();
            one(&format!("{name}_total"), "counter", help.trim(), &values);
        }
    }
    let flowing = |s: &Arc<Stream>| (label(s.name()), u64::from(s.is_flowing.load(Ordering::Relaxed)));
    one("flowing", "gauge", "Whether packets come from the source", &streams.iter().map(flowing).collect::<Vec<_>>());
    let none = String::new;
    let viewers = |s: &Arc<Stream>| (label(s.name()), s.viewers.load(Ordering::Relaxed) as u64);
    one("stream_viewers", "gauge", "Viewers that play it", &streams.iter().map(viewers).collect::<Vec<_>>());
    one("viewers", "gauge", "Viewers that play", &[(none(), viewers_of(&streams) as u64)]);
    let refused = shared.counts.refused();
    one("refused_total", "counter", "Connections and viewers that were refused", &[(none(), refused)]);
    text
}

/// Streams that are served, as far as somebody may know of them.
fn served(shared: &Shared, may: &auth::Streams) -> Vec<Arc<Stream>> {
    let is_served = |stream: &Arc<Stream>| !stream.is_gone.load(Ordering::Relaxed) && may.has(stream.name());
    shared.streams().into_iter().filter(is_served).collect()
}

/// Viewers that play them.
fn viewers_of(streams: &[Arc<Stream>]) -> usize {
    streams.iter().map(|stream| stream.viewers.load(Ordering::Relaxed)).sum()
}

/// What is flowing, for programs and for the page.
fn streams(shared: &Shared, may: &auth::Streams) -> String {
    let one = |stream: &Arc<Stream>| {
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
            "source": told.server,
            "viewers": stream.viewers.load(Ordering::Relaxed),
            "is_flowing": stream.is_flowing.load(Ordering::Relaxed),
            "trouble": told.trouble,
            "tracks": tracks,
            "over_http": told.description.as_ref().is_some_and(|description| ts::can_hold(description)),
            "counts": counts,
        })
    };
    let all = served(shared, may);
    let streams: Vec<_> = all.iter().map(one).collect();
    format!("{}\n", json!({ "viewers": viewers_of(&all), "streams": streams }))
}
