//! A network that loses one packet of a hundred and reorders, and real players behind the proxy: no picture is damaged that was not lost.
//!
//! Every picture is unlike all others, so what a player shows is a picture that was sent, or it is damaged. Where every picture is a key, all
//! are shown that lost nothing; where they refer to each other, those that refer to nothing that is missing. `MULTIGRAIN_PICTURES=15000` is ten
//! minutes; 250 pictures are ten seconds.

#[path = "support/lossy.rs"]
mod lossy;
use crate::support;

use lossy::{Relay, Weather};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::{Camera, Manners, PATIENCE, Playing, Proxy, VIDEO, rtp};

const WIDTH: usize = 320;
const HEIGHT: usize = 240;
/// Bytes of a picture that is decoded.
const SHOWN: usize = WIDTH * HEIGHT * 3 / 2;
/// Pictures of the clip, which is sent again and again.
const CLIP: usize = 250;
const PIXELS: &[&str] = &["-pix_fmt", "yuv420p", "-vsync", "0", "-f", "rawvideo", "-"];

/// Pictures that are sent in bad weather.
fn pictures() -> usize {
    std::env::var("MULTIGRAIN_PICTURES").ok().and_then(|text| text.parse().ok()).unwrap_or(250)
}

fn there_is(program: &str, asks: &str) -> bool {
    let there = Command::new(program).arg(asks).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !there {
        eprintln!("skipped: there is no {program} here");
    }
    there
}

fn sum(picture: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    picture.hash(&mut hasher);
    hasher.finish()
}

/// How a clip is encoded.
#[derive(Clone, Copy)]
struct Encoded {
    name: &'static str,
    is_h264: bool,
    arguments: &'static [&'static str],
}

const KEYS: Encoded = Encoded {
    name: "keys only",
    is_h264: true,
    arguments: &["-c:v", "libx264", "-preset", "veryfast", "-x264-params", "keyint=1:slices=3", "-qp", "28"],
};

/// One that refers: a key every two seconds.
const REFERRING: [Encoded; 3] = [
    Encoded {
        name: "H.264",
        is_h264: true,
        arguments: &["-c:v", "libx264", "-x264-params", "keyint=50:min-keyint=50:scenecut=0:bframes=0:slices=3"],
    },
    Encoded {
        name: "H.264 with B pictures",
        is_h264: true,
        arguments: &["-c:v", "libx264", "-x264-params", "keyint=50:min-keyint=50:scenecut=0:bframes=3:slices=3"],
    },
    // Its keys are open: pictures lead them that refer across them.
    Encoded {
        name: "H.265 with B pictures",
        is_h264: false,
        arguments: &["-c:v", "libx265", "-x265-params", "keyint=50:min-keyint=50:scenecut=0:open-gop=1:log-level=none"],
    },
];

/// A clip.
struct Clip {
    is_h264: bool,
    /// As they are sent: each as its units, and its place in the order of show.
    pictures: Vec<(usize, Vec<Vec<u8>>)>,
    /// Places by how they look.
    looks: HashMap<u64, usize>,
}

impl Clip {
    /// Makes it, if this ffmpeg can.
    fn new(folder: &Path, encoded: Encoded) -> Option<Clip> {
        let (whole, file) = (folder.join("clip.mp4"), folder.join("clip.raw"));
        let is_made = |program: &str, arguments: &[&str], to: &Path| {
            let mut command = Command::new(program);
            command.args(["-v", "error", "-y"]).args(arguments).arg(to).status().is_ok_and(|status| status.success())
        };
        let source = ["-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25", "-frames:v", &CLIP.to_string()];
        if !is_made("ffmpeg", &[&source[..], encoded.arguments, &["-pix_fmt", "yuv420p"]].concat(), &whole) {
            eprintln!("skipped: this ffmpeg does not encode {}", encoded.name);
            return None;
        }
        let from = whole.to_str().unwrap();
        let kind = if encoded.is_h264 { "h264" } else { "hevc" };
        let filter = format!("{kind}_mp4toannexb");
        assert!(is_made("ffmpeg", &["-i", from, "-c", "copy", "-bsf:v", &filter, "-f", kind], &file));
        let times = Command::new("ffprobe")
            .args(["-v", "error", "-show_entries", "packet=pts_time", "-of", "csv=p=0", from])
            .output()
            .unwrap();
        let times: Vec<f64> = String::from_utf8(times.stdout)
            .unwrap()
            .lines()
            .filter_map(|line| line.trim_end_matches(',').parse().ok())
            .collect();
        let first = times.iter().copied().fold(f64::MAX, f64::min);
        let places = times.iter().map(|time| ((time - first) * 25.0).round() as usize);
        let bytes = std::fs::read(&file).unwrap();
        let starts: Vec<usize> = (0..bytes.len() - 2).filter(|i| bytes[*i..*i + 3] == [0, 0, 1]).collect();
        let (mut pictures, mut has_slice): (Vec<Vec<Vec<u8>>>, _) = (vec![Vec::new()], false);
        for (i, start) in starts.iter().enumerate() {
            let end = starts.get(i + 1).copied().unwrap_or(bytes.len());
            let mut unit = bytes[start + 3..end].to_vec();
            while i + 1 < starts.len() && unit.last() == Some(&0) {
                unit.pop();
            }
            let (is_slice, behind) = match encoded.is_h264 {
                true => (matches!(unit[0] & 0x1f, 1 | 5), unit[1]),
                false => (unit[0] >> 1 < 32, unit[2]),
            };
            if has_slice && (!is_slice || behind & 0x80 != 0) {
                pictures.push(Vec::new());
                has_slice = false;
            }
            has_slice |= is_slice;
            pictures.last_mut().unwrap().push(unit);
        }
        let decoded = Command::new("ffmpeg").args(["-v", "error", "-i", from]).args(PIXELS).output().unwrap();
        let looks: HashMap<u64, usize> =
            decoded.stdout.chunks_exact(SHOWN).enumerate().map(|(number, picture)| (sum(picture), number)).collect();
        assert_eq!((pictures.len(), looks.len()), (CLIP, CLIP), "pictures that are alike cannot be told apart");
        Some(Clip { is_h264: encoded.is_h264, pictures: places.zip(pictures).collect(), looks })
    }
}

/// A player, and what it has shown so far: a picture of the clip, or none.
struct Player {
    name: &'static str,
    shown: Arc<Mutex<Vec<Option<usize>>>>,
    children: Vec<Child>,
}

impl Player {
    /// The last of these programs, each of which reads the one before, tells pictures.
    fn start(name: &'static str, programs: Vec<Command>, clip: &Arc<Clip>) -> Player {
        let mut children: Vec<Child> = Vec::new();
        for mut program in programs {
            if let Some(before) = children.last_mut().and_then(|before| before.stdout.take()) {
                program.stdin(Stdio::from(before));
            }
            children.push(program.stdout(Stdio::piped()).spawn().unwrap());
        }
        let mut output = children.last_mut().unwrap().stdout.take().unwrap();
        let (shown, clip) = (Arc::new(Mutex::new(Vec::new())), clip.clone());
        let to = shown.clone();
        std::thread::spawn(move || {
            let mut picture = vec![0; SHOWN];
            while output.read_exact(&mut picture).is_ok() {
                to.lock().unwrap().push(clip.looks.get(&sum(&picture)).copied());
            }
        });
        Player { name, shown, children }
    }

    fn count(&self) -> usize {
        self.shown.lock().unwrap().len()
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn program(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(arguments).stderr(Stdio::null()).stdin(Stdio::null());
    command
}

fn ffmpeg(arguments: &[&str]) -> Command {
    program("ffmpeg", &[&["-v", "error", "-nostdin", "-fflags", "nobuffer"], arguments, PIXELS].concat())
}

fn gstreamer(elements: &str, is_h264: bool) -> Vec<Command> {
    let number = if is_h264 { 264 } else { 265 };
    let elements = elements.replace("depay", &format!("rtph{number}depay"));
    let tail =
        format!("h{number}parse ! avdec_h{number} max-threads=1 ! video/x-raw,format=I420 ! fdsink fd=1 sync=false");
    let all = format!("-q {elements} ! {tail}");
    vec![program("gst-launch-1.0", &all.split(' ').collect::<Vec<_>>())]
}

/// GStreamer by RTSP, over TCP or UDP.
fn gstreamer_by(way: &str, rtsp: &str, is_h264: bool) -> Vec<Command> {
    gstreamer(&format!("rtspsrc location={rtsp} protocols={way} latency=1000 ! depay"), is_h264)
}

/// It refuses to be run by root.
fn vlc(address: &str) -> Command {
    let sout = "#std{access=file,mux=ts,dst=-}";
    let own = ["cvlc", "-q", "-I", "dummy", "--no-sout-audio", "--network-caching=500", address, "--sout", sout];
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let all: Vec<&str> = if is_root { other.iter().chain(&own).copied().collect() } else { own.to_vec() };
    let mut command = program(all[0], &all[1..]);
    command.env("HOME", "/tmp");
    command
}

/// Sends pictures of the clip, as a camera does, until it is told to end: 25 a second, or fewer while `is_slow`.
struct Sender {
    is_slow: AtomicBool,
    ends: AtomicBool,
    /// The next picture's.
    number: AtomicUsize,
}

impl Sender {
    fn run(&self, playing: &mut Playing, clip: &Clip) {
        let (mut sequence, mut due) = (65_000_u16, Instant::now());
        while !self.ends.load(Ordering::Relaxed) {
            due += Duration::from_millis(if self.is_slow.load(Ordering::Relaxed) { 400 } else { 40 });
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let number = self.number.load(Ordering::Relaxed);
            let (place, units) = &clip.pictures[number % CLIP];
            // When it is shown; pictures before the first of a turn would be of the turn before.
            let shown = number - number % CLIP + place;
            let header = if clip.is_h264 { 1 } else { 2 };
            for (index, unit) in units.iter().enumerate() {
                let parts = unit[header..].chunks(700).count();
                for (i, bytes) in unit[header..].chunks(700).enumerate() {
                    let is_last = index + 1 == units.len() && i + 1 == parts;
                    let bits = if i == 0 { 0x80 } else { 0 } | if i + 1 == parts { 0x40 } else { 0 };
                    let head = match (parts, clip.is_h264) {
                        (1, _) => unit[..header].to_vec(),
                        (_, true) => vec![unit[0] & 0xe0 | 28, bits | unit[0] & 0x1f],
                        (_, false) => vec![unit[0] & 0x81 | 49 << 1, unit[1], bits | unit[0] >> 1],
                    };
                    let kind = 96 | if is_last { 0x80 } else { 0 };
                    playing.send(0, &rtp(kind, sequence, shown as u32 * 3600, 7, &[&head[..], bytes].concat()));
                    sequence = sequence.wrapping_add(1);
                }
            }
            self.number.store(number + 1, Ordering::Relaxed);
        }
    }

    fn sent(&self) -> usize {
        self.number.load(Ordering::Relaxed)
    }
}

/// Waits until something holds, or only a fault can be why it does not.
fn wait(mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() && began.elapsed() < 2 * PATIENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What a player made of pictures of which some had lost packets.
#[derive(Debug, Default)]
struct Verdict {
    shown: usize,
    /// Shown, and not as any picture was sent.
    damaged: usize,
    /// Not shown, though nothing of them was lost.
    missing: Vec<usize>,
    /// Pictures that lost something, among those between the first and the last.
    lost: usize,
    /// Of these, shown as they were sent.
    mended: usize,
}

/// The number of a picture that looks so: players begin within the first turn of the clip, and miss less than one at a time.
fn following(last: Option<usize>, look: usize) -> usize {
    last.map_or(look, |last| last + 1 + (look + CLIP - (last + 1) % CLIP) % CLIP)
}

fn judge(shown: &[Option<usize>], is_lost: &dyn Fn(usize) -> bool) -> Verdict {
    let mut verdict = Verdict { shown: shown.len(), ..Verdict::default() };
    let mut last: Option<usize> = None;
    for look in shown {
        let Some(look) = look else {
            verdict.damaged += 1;
            continue;
        };
        let number = following(last, *look);
        let between = last.map_or(number..number, |last| last + 1..number);
        verdict.lost += between.clone().filter(|n| is_lost(*n)).count() + usize::from(is_lost(number));
        verdict.mended += usize::from(is_lost(number));
        verdict.missing.extend(between.filter(|n| !is_lost(*n)));
        last = Some(number);
    }
    verdict
}

/// Damaged pictures that nothing explains: in a row more than have lost something between the pictures before and behind them.
fn unexplained(shown: &[Option<usize>], is_lost: &dyn Fn(usize) -> bool) -> usize {
    let (mut last, mut damaged, mut unexplained): (Option<usize>, usize, usize) = (None, 0, 0);
    for look in shown {
        let Some(look) = look else {
            damaged += 1;
            continue;
        };
        let number = following(last, *look);
        let between = last.map_or(number, |last| last + 1)..number;
        unexplained += damaged.saturating_sub(between.filter(|number| is_lost(*number)).count());
        (last, damaged) = (Some(number), 0);
    }
    unexplained + damaged
}

/// What came of bad weather: what players showed, which pictures were sent meanwhile, and which of them lost something.
struct Weathered {
    players: Vec<Player>,
    bad: Range<usize>,
    lost: HashSet<u32>,
    proxy: Proxy,
}

/// Where players find the stream.
struct Places {
    ts: String,
    mp4: String,
    rtsp: String,
}

/// A camera that sends the clip, through a network that loses of a thousand packets ten and reorders fifty, and players of the proxy: fine
/// weather until all show something, then bad, then fine until all have shown what comes behind that. A camera that `begins_slowly` sends
/// few pictures until all players are there.
fn weather(
    clip: &Arc<Clip>,
    begins_slowly: bool,
    players: impl FnOnce(&Places) -> Vec<(&'static str, Vec<Command>)>,
) -> Weathered {
    let description = if clip.is_h264 { VIDEO.to_owned() } else { VIDEO.replace("H264", "H265") };
    let camera = Camera::new(Manners::of(&description));
    let rains = Arc::new(AtomicBool::new(false));
    let network = Relay::new(camera.address, Weather { seed: 7, lost: 10, late: 50 }, rains.clone());
    // What is late here comes four packets later, however slow this computer is.
    let source = format!("front=rtsp://{}/", network.address);
    let proxy = Proxy::start(&["-s", &source, "--transport", "udp", "--reorder-ms", "1000"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let http = |kind: &str| format!("http://127.0.0.1:{}/front.{kind}", proxy.http);
    let rtsp = format!("rtsp://127.0.0.1:{}/front", proxy.rtsp);
    let players = players(&Places { ts: http("ts"), mp4: http("mp4"), rtsp });
    let sender =
        Sender { is_slow: AtomicBool::new(begins_slowly), ends: AtomicBool::new(false), number: AtomicUsize::new(0) };
    let (players, bad) = std::thread::scope(|scope| {
        scope.spawn(|| sender.run(&mut playing, clip));
        let players: Vec<Player> =
            players.into_iter().map(|(name, programs)| Player::start(name, programs, clip)).collect();
        wait(|| proxy.metric("viewers ") >= players.len() as u64);
        sender.is_slow.store(false, Ordering::Relaxed);
        wait(|| players.iter().all(|player| player.count() > 0));
        rains.store(true, Ordering::Relaxed);
        let first = sender.sent();
        while sender.sent() < first + pictures() {
            std::thread::sleep(Duration::from_millis(20));
        }
        rains.store(false, Ordering::Relaxed);
        let last = sender.sent();
        let counts: Vec<usize> = players.iter().map(|player| player.count() + 75).collect();
        wait(|| players.iter().zip(&counts).all(|(player, count)| player.count() >= *count));
        sender.ends.store(true, Ordering::Relaxed);
        (players, first..last)
    });
    let done = network.done.lock().unwrap();
    println!("{} packets, {} lost, {} late", done.packets, done.packets_lost, done.packets_late);
    assert!(!done.lost.is_empty() && done.packets_late > 0);
    assert_eq!(proxy.metric("packets_lost"), done.packets_lost, "lost elsewhere than in the network; {}", proxy.log());
    Weathered { players, bad, lost: done.lost.clone(), proxy }
}

#[test]
fn no_picture_is_damaged_that_was_not_lost() {
    if !there_is("ffmpeg", "-version") {
        return;
    }
    let (has_gstreamer, has_vlc) = (there_is("gst-launch-1.0", "--version"), there_is("cvlc", "--version"));
    let folder = tempfile::tempdir().unwrap();
    let Some(clip) = Clip::new(folder.path(), KEYS) else { return };
    let from_stdin = || ffmpeg(&["-f", "mpegts", "-i", "-"]);
    let found = weather(&Arc::new(clip), true, |Places { ts, mp4, rtsp }| {
        let mut players = vec![
            ("ffmpeg, HTTP, MPEG-TS", vec![ffmpeg(&["-i", ts])]),
            ("ffmpeg, HTTP, MP4", vec![ffmpeg(&["-i", mp4])]),
            ("ffmpeg, RTSP, TCP", vec![ffmpeg(&["-rtsp_transport", "tcp", "-i", rtsp])]),
            ("ffmpeg, RTSP, UDP", vec![ffmpeg(&["-rtsp_transport", "udp", "-max_delay", "2000000", "-i", rtsp])]),
        ];
        if has_gstreamer {
            let http = |place: &str, demux: &str| gstreamer(&format!("souphttpsrc location={place} ! {demux}"), true);
            players.push(("GStreamer, HTTP, MPEG-TS", http(ts, "tsdemux")));
            players.push(("GStreamer, HTTP, MP4", http(mp4, "qtdemux")));
            players.push(("GStreamer, RTSP, TCP", gstreamer_by("tcp", rtsp, true)));
            players.push(("GStreamer, RTSP, UDP", gstreamer_by("udp", rtsp, true)));
        }
        if has_vlc {
            players.push(("VLC, HTTP, MPEG-TS", vec![vlc(ts), from_stdin()]));
            players.push(("VLC, HTTP, MP4", vec![vlc(mp4), from_stdin()]));
        }
        players
    });
    let is_lost = |number: usize| found.lost.contains(&(number as u32 * 3600));
    let lost = found.bad.clone().filter(|number| is_lost(*number)).count();
    println!("{} pictures in bad weather, {lost} lost something", found.bad.len());
    let verdicts: Vec<(&str, Verdict)> =
        found.players.iter().map(|player| (player.name, judge(&player.shown.lock().unwrap(), &is_lost))).collect();
    verdicts.iter().for_each(|(name, verdict)| println!("{name}: {verdict:?}"));
    for (name, verdict) in &verdicts {
        assert!(verdict.shown > found.bad.len() - lost, "{name}: {verdict:?}");
        assert!(verdict.missing.is_empty(), "{name}: {verdict:?}");
        // By RTSP a player gets what is left of a picture, and shows what it makes of that.
        assert!(verdict.damaged <= if name.contains("HTTP") { 0 } else { verdict.lost }, "{name}: {verdict:?}");
    }
}

/// Pictures that refer to others are shown as they were sent, or not at all, or they have lost something themselves.
#[test]
fn nothing_is_shown_that_refers_to_what_is_missing() {
    if !there_is("ffmpeg", "-version") || !there_is("ffprobe", "-version") {
        return;
    }
    let has_gstreamer = there_is("gst-launch-1.0", "--version");
    std::thread::scope(|scope| {
        for encoded in REFERRING {
            scope.spawn(move || refers(encoded, has_gstreamer));
        }
    });
}

fn refers(encoded: Encoded, has_gstreamer: bool) {
    let folder = tempfile::tempdir().unwrap();
    let Some(clip) = Clip::new(folder.path(), encoded) else { return };
    // With `nobuffer` what was looked at first is not shown, and what is begins between keys.
    let whole = |from: &[&str]| {
        let own = [&["-v", "error", "-nostdin", "-analyzeduration", "1000000"], from].concat();
        vec![program("ffmpeg", &[&own, PIXELS].concat())]
    };
    let is_h264 = clip.is_h264;
    let found = weather(&Arc::new(clip), false, |Places { ts, mp4, rtsp }| {
        let mut players = vec![
            ("ffmpeg, HTTP, MPEG-TS", whole(&["-i", ts])),
            ("ffmpeg, HTTP, MP4", whole(&["-i", mp4])),
            ("ffmpeg, RTSP, TCP", whole(&["-rtsp_transport", "tcp", "-i", rtsp])),
            ("ffmpeg, RTSP, UDP", whole(&["-rtsp_transport", "udp", "-max_delay", "2000000", "-i", rtsp])),
        ];
        if has_gstreamer {
            players.push(("GStreamer, RTSP, TCP", gstreamer_by("tcp", rtsp, is_h264)));
            players.push(("GStreamer, RTSP, UDP", gstreamer_by("udp", rtsp, is_h264)));
        }
        players
    });
    let lost = found.lost.len();
    let mut faults = Vec::new();
    for player in &found.players {
        let shown = player.shown.lock().unwrap().clone();
        let damaged = shown.iter().filter(|look| look.is_none()).count();
        let unexplained = unexplained(&shown, &|number| found.lost.contains(&(number as u32 * 3600)));
        println!(
            "{}, {}: {} shown, {} sent in bad weather, {lost} lost something, {damaged} damaged, {unexplained} of them where nothing was lost",
            encoded.name,
            player.name,
            shown.len(),
            found.bad.len()
        );
        let may_be = if player.name.contains("HTTP") { 0 } else { lost };
        if damaged > may_be || unexplained > 0 || shown.len() < 150 {
            faults.push((player.name, shown.len(), damaged, unexplained));
        }
    }
    assert!(faults.is_empty(), "{}: shown, damaged, unexplained: {faults:?}; {lost} lost something", encoded.name);
    assert!(found.proxy.metric("packets_left_out") > 0);
}
