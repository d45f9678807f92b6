//! The page in a real browser, without a screen: it loads, zooms, filters, jumps to a stall, and shows no error. Where
//! no Chromium is installed the test says that it is skipped; `MULTIGRAIN_CHROMIUM` names another program.

use crate::support;

use multigrain_trace::export::{Format, write};
use multigrain_trace::{End, Flow, Idleness, Kind, Record, SlotInfo, Trace};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use support::traces;

/// The program, if this computer has one.
fn chromium() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("MULTIGRAIN_CHROMIUM") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name))).find(|file| file.is_file())
}

/// A run of two workers with transfers, waits, idle times, and text that must not be taken for markup.
fn trace(leaves: u64) -> Trace {
    let mut header = traces::header(2, 2);
    header.program = "sgemm </script><b>&amp;".into();
    let mut records = Vec::new();
    let mut slots = Vec::new();
    let mut t = 0;
    for i in 0..leaves {
        let number = i as u32;
        let record = |worker, kind, start, end, subject, detail| Record {
            start,
            end,
            number,
            subject,
            worker,
            index: if kind == Kind::Leaf { 0 } else { (i / 10 % 2) as u16 },
            kind,
            detail,
        };
        if i % 10 == 0 {
            let slot = slots.len() as u32;
            slots.push(SlotInfo { bytes: 4096, start: vec![i, 0], len: vec![1, 64], ..SlotInfo::default() });
            let flow = if i % 20 == 0 { Flow::Down } else { Flow::Up } as u8;
            records.push(record(0, Kind::Transfer, t, t + 700, slot, flow));
            records.push(record(0, Kind::Queue, t, t + 100, slot, flow));
            records.push(record(0, Kind::Wait, t + 50, t + 701, 0, 0));
            records.push(record(1, Kind::Wait, t + 50, t + 701, 0, 0));
            t += 701;
        }
        records.push(record(0, Kind::Leaf, t, t + 300 + i % 50, 0, 0));
        records.push(record(1, Kind::Leaf, t, t + 200, 0, 0));
        records.push(record(1, Kind::Idle, t + 200, t + 300 + i % 50, 0, Idleness::Join as u8));
        t += 310 + i % 50;
    }
    records.sort_by_key(|r| (r.start, r.worker, u64::MAX - r.end));
    Trace { header, slots, records, end: End { tick: t, ..End::default() }, ..Trace::default() }
}

/// Does what a person would do, and puts what it saw into the document.
const VISIT: &str = r##"<script>
window.seen = { errors: [], cut: [], labels: 0 };
// Labels of the axis that would lie beyond the picture.
const drawText = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
  const right = x + (this.textAlign === "left" ? this.measureText(text).width : 0);
  if (y < 20) seen.labels += 1;
  if (y < 20 && right > this.canvas.clientWidth) seen.cut.push(`${text} ends at ${right}`);
  drawText.call(this, text, x, y, ...rest);
};
window.addEventListener("error", (e) => seen.errors.push(String(e.message)));
window.addEventListener("unhandledrejection", (e) => seen.errors.push(String(e.reason)));
for (const level of ["error", "warn"]) console[level] = (...args) => seen.errors.push(args.join(" "));
window.addEventListener("load", async () => {
  const page = window.multigrain, canvas = document.getElementById("lanes");
  // Until the page has drawn again; pages without a screen draw when they like.
  const frame = async (since = page.frames()) => {
    for (let i = 0; i < 200 && page.frames() === since; i += 1) await new Promise((done) => setTimeout(done, 10));
  };
  const pixels = () => {
    const image = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    let sum = 0;
    for (let i = 0; i < image.length; i += 1) sum = (sum * 31 + image[i]) >>> 0;
    return sum;
  };
  const span = () => page.view.to - page.view.from;
  const step = async (name, act, holds) => {
    const before = { pixels: pixels(), from: page.view.from, span: span(), lanes: page.lanes() };
    const since = page.frames();
    act();
    await frame(since);
    seen[name] = { drawn: pixels() !== before.pixels, holds: Boolean(holds(before)) };
  };
  const key = (name) => canvas.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
  const pointer = (type, x) => canvas.dispatchEvent(new PointerEvent(type, { pointerId: 1, clientX: x, clientY: 60, bubbles: true }));
  const choose = (id, value) => {
    document.getElementById(id).value = value;
    document.getElementById(id).dispatchEvent(new Event("change"));
  };
  try {
    seen.title = document.getElementById("title").textContent;
    seen.lanes = page.lanes();
    seen.spans = page.data.lanes.reduce((sum, lane) => sum + lane.s.length, 0);
    seen.many = page.data.lanes.reduce((sum, lane) => sum + lane.g.reduce((n, g) => n + g[0], 0), 0);
    seen.stalls = document.querySelectorAll("#stalls button").length;
    seen.rows = document.querySelectorAll("#bars .row").length;
    seen.tops = ["kinds", "out", "in", "all"].map((id) => {
      const place = document.getElementById(id).getBoundingClientRect();
      return Math.round(place.top + place.height / 2);
    });
    seen.beyond = document.documentElement.scrollWidth - window.innerWidth;
    await step("wheel", () => canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -600, clientX: 700, bubbles: true, cancelable: true })), (b) => span() < b.span);
    await step("plus", () => key("+"), (b) => span() < b.span);
    await step("right", () => key("ArrowRight"), (b) => page.view.from > b.from && Math.abs(span() - b.span) < 1);
    await step("drag", () => { pointer("pointerdown", 600); pointer("pointermove", 500); pointer("pointerup", 500); }, (b) => page.view.from > b.from && Math.abs(span() - b.span) < 1);
    await step("whole", () => key("0"), () => page.view.from === 0 && page.view.to === page.data.wall_ns);
    await step("kind", () => document.getElementById("kind-leaf").click(), () => !page.filter.kinds.has(0));
    await step("kind_back", () => document.getElementById("kind-leaf").click(), () => page.filter.kinds.has(0));
    await step("path", () => document.getElementById("path").click(), () => !page.filter.path);
    await step("worker", () => choose("worker", "1"), (b) => page.lanes() === b.lanes - 1);
    await step("worker_back", () => choose("worker", ""), (b) => page.lanes() === b.lanes + 1);
    await step("edge", () => choose("edge", "1"), (b) => page.lanes() < b.lanes);
    choose("edge", "");
    await frame();
    await step("jump", () => document.querySelector("#stalls button").click(), () => {
      const stall = page.chosen();
      return page.view.from <= stall.start && page.view.to >= stall.start + stall.length && span() < page.data.wall_ns;
    });
    seen.leaf = page.describe(160, 30) !== null;
    for (let i = 0; i < 5; i += 1) { page.show(0, page.data.wall_ns - i); await frame(); }
  } catch (error) { seen.errors.push(String(error.stack || error)); }
  fetch("/seen", { method: "POST", body: JSON.stringify(seen) });
});
</script>"##;

/// One request: its first line and its body. `None` for a connection that was opened for nothing.
fn request(stream: &TcpStream) -> std::io::Result<Option<(String, String)>> {
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some(("content-length", value)) = line.to_ascii_lowercase().split_once(':') {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some((first, String::from_utf8_lossy(&body).into_owned())))
}

/// Gives the page to whoever asks, until somebody tells what was seen. Other things that were asked for are listed.
fn serve(listener: &TcpListener, page: &str) -> std::io::Result<(String, Vec<String>)> {
    let mut others = Vec::new();
    loop {
        let (mut stream, _) = listener.accept()?;
        let Ok(Some((first, body))) = request(&stream) else { continue };
        let page = match first.split(' ').collect::<Vec<_>>()[..] {
            ["GET", "/", ..] => page,
            ["POST", "/seen", ..] => return Ok((body, others)),
            _ => {
                others.push(first);
                ""
            }
        };
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n";
        // The browser may have gone; then the visit does not end, and that is told.
        let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{page}", page.len());
    }
}

/// Ends the browser whatever becomes of the test.
struct Browser(Child);

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Opens the page with the visit in it. The browser is given two minutes.
fn visit(chromium: &Path, trace: &Trace) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.html");
    write(trace, Format::Html, &path).unwrap();
    let page = std::fs::read_to_string(&path).unwrap();
    for outside in ["http://", "https://", " src=", "@import", "url("] {
        assert!(!page.contains(outside), "the page asks for something outside: {outside}");
    }
    // Before the page's own script, so that its errors are seen.
    let visited = page.replacen("<body>", &format!("<body>{VISIT}"), 1);
    assert_ne!(page, visited);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(serve(&listener, &visited)));
    let log = folder.path().join("log");
    let browser = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,900"])
        .args(["--no-first-run", "--disable-background-networking", "--remote-debugging-port=0"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("http://{address}/"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&log).unwrap())
        .spawn()
        .expect("chromium starts");
    let browser = Browser(browser);
    let told = receiver.recv_timeout(Duration::from_secs(120));
    drop(browser);
    let problem = || std::fs::read_to_string(&log).unwrap_or_default();
    let (seen, others) = told.unwrap_or_else(|_| panic!("the visit did not end: {}", problem())).unwrap();
    assert!(others.iter().all(|line| line.starts_with("GET /favicon.ico ")), "{others:?}");
    serde_json::from_str(&seen).unwrap()
}

#[test]
fn the_page_loads_zooms_filters_and_jumps() {
    let Some(chromium) = chromium() else {
        eprintln!("skipped: no chromium on this computer");
        return;
    };
    let seen = visit(&chromium, &trace(400));
    assert_eq!(seen["errors"], serde_json::json!([]), "{seen}");
    assert_eq!(seen["title"], "sgemm </script><b>&amp; on test");
    assert!(seen["lanes"].as_u64() >= Some(4) && seen["stalls"].as_u64() >= Some(10), "{seen}");
    assert_eq!(seen["rows"], 3);
    assert_eq!(seen["many"], 0);
    let steps = [
        "wheel",
        "plus",
        "right",
        "drag",
        "whole",
        "kind",
        "kind_back",
        "path",
        "worker",
        "worker_back",
        "edge",
        "jump",
    ];
    for step in steps {
        assert_eq!(seen[step], serde_json::json!({ "drawn": true, "holds": true }), "{step} in {seen}");
    }
    assert_eq!(seen["leaf"], true);
    // At 1400 pixels what is chosen stands in one line, and nothing is cut.
    let tops: Vec<i64> = seen["tops"].as_array().unwrap().iter().filter_map(serde_json::Value::as_i64).collect();
    assert!(tops.len() == 4 && tops.iter().all(|top| top.abs_diff(tops[0]) <= 2), "{seen}");
    assert!(seen["beyond"].as_i64() <= Some(0) && seen["labels"].as_u64() > Some(20), "{seen}");
    assert_eq!(seen["cut"], serde_json::json!([]), "{seen}");
}

#[test]
fn a_million_records_are_summed_up() {
    let Some(chromium) = chromium() else {
        eprintln!("skipped: no chromium on this computer");
        return;
    };
    let trace = trace(300_000);
    assert!(trace.records.len() > 1_000_000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.html");
    write(&trace, Format::Html, &path).unwrap();
    let size = std::fs::metadata(&path).unwrap().len();
    assert!(size < 24 << 20, "{size} bytes");
    let seen = visit(&chromium, &trace);
    assert_eq!(seen["errors"], serde_json::json!([]), "{seen}");
    assert!(seen["spans"].as_u64() < Some(400_000) && seen["many"].as_u64() > Some(500_000), "{seen}");
    assert_eq!(seen["wheel"]["drawn"], true);
}

/// Below each worker's lane is one of what the operating system did with it.
#[test]
fn the_page_has_kernel_lanes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.html");
    write(&support::traces::observed(), Format::Html, &path).unwrap();
    let page = std::fs::read_to_string(&path).unwrap();
    let (_, data) = page.split_once("type=\"application/json\"").expect("the data");
    let (_, data) = data.split_once('>').unwrap();
    let data: serde_json::Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let lanes = data["lanes"].as_array().unwrap();
    let names: Vec<_> = lanes.iter().map(|lane| lane["name"].as_str().unwrap()).collect();
    assert_eq!(names[..4], ["worker 0", "worker 0, kernel", "worker 1", "worker 1, kernel"]);
    // Starts as differences, lengths, kinds: set aside, waits by itself, woken.
    assert_eq!(lanes[1]["kernel"], true);
    assert_eq!(
        (&lanes[1]["s"], &lanes[1]["d"]),
        (&serde_json::json!([200, 800, 150]), &serde_json::json!([300, 150, 250]))
    );
    assert_eq!(lanes[1]["k"], serde_json::json!([8, 9, 10]));
    assert_eq!(lanes[0]["kernel"], serde_json::Value::Null);
    let Some(chromium) = chromium() else {
        eprintln!("the page was not looked at: no chromium on this computer");
        return;
    };
    let seen = visit(&chromium, &support::traces::observed());
    assert_eq!(seen["title"], "sgemm on test");
}
