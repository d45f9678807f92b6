//! A source as it is pulled, without a source.

use super::*;

fn source(addresses: &[&str]) -> Source {
    let addresses = addresses.iter().map(|text| Address::parse(text).unwrap()).collect();
    Source { name: "door".to_owned(), addresses, transport: Transport::Auto }
}

fn pull(addresses: &[&str], now: Instant) -> Pull {
    let short = Duration::from_millis(50);
    let limits = Limits { viewers: 1, connections_an_address: 1, queue_bytes: 1 << 20, reorder: short, gather: short };
    Pull::new(Arc::new(Stream::new(0, source(addresses))), limits, 0, now)
}

/// It plays by now; the end of the camera.
fn plays(pull: &mut Pull, way: Way, now: Instant) -> std::net::TcpStream {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    socket.set_nonblocking(true).unwrap();
    let peer = "127.0.0.1".parse().unwrap();
    let mut talk = Talk::new(Wire::from(socket), Dialogue::new(pull.address(), way), peer, now);
    talk.is_playing = true;
    pull.phase = Phase::Talking(Box::new(talk));
    listener.accept().unwrap().0
}

fn tick(pull: &mut Pull, now: Instant) {
    pull.tick(now, || Arc::new(Trust::new(None).unwrap()), |_| {});
}

fn rest(pull: &Pull, now: Instant) -> Duration {
    let Phase::Resting(until) = pull.phase else { panic!("it does not rest") };
    until - now
}

/// A server was looked after while the list was read again, and has no such place any more.
#[test]
fn who_was_asked_of_a_list_of_before_says_nothing_of_this_one() {
    let now = Instant::now();
    let mut pull = pull(&["rtsp://a/", "rtsp://b/", "rtsp://c/"], now);
    let before = pull.source.clone();
    pull.stream.set_source(source(&["rtsp://a/", "rtsp://d/"]));
    pull.follow(now);
    for place in 0..3 {
        pull.checked(&before, place, Err(Trouble::NoUdp), now);
    }
    assert_eq!(pull.choice.best(now), choice(&pull.source).best(now));
    let now_given = pull.source.clone();
    pull.checked(&now_given, pull.choice.best(now), Err(Trouble::NoUdp), now);
    assert_ne!(pull.choice.best(now), choice(&pull.source).best(now));
}

/// No datagrams arrive, it plays within the connection for a while, and is switched off.
#[test]
fn a_camera_that_is_off_is_left_alone_for_longer_and_longer() {
    let mut now = Instant::now();
    let mut pull = pull(&["rtsp://127.0.0.1:9/a"], now);
    let _camera = plays(&mut pull, Way::Udp, now);
    now += DATAGRAMS + Duration::from_secs(1);
    tick(&mut pull, now);
    assert!(rest(&pull, now).is_zero() && pull.within.is_some());
    for healthy in [false, true, true] {
        let _camera = plays(&mut pull, Way::Tcp, now);
        if healthy {
            now += HEALTHY + Duration::from_secs(2);
            if let Phase::Talking(talk) = &mut pull.phase {
                talk.heard = now;
            }
            tick(&mut pull, now);
        }
        let rests = [(); 8].map(|()| {
            pull.trouble(Trouble::Other("it is off".to_owned()), now);
            rest(&pull, now).as_secs()
        });
        for (rest, least) in rests.into_iter().zip([1, 2, 4, 8, 16, 30, 30, 30]) {
            assert!((least..=least + least / 2).contains(&rest), "{rests:?}");
        }
    }
    // Who lets in and sends nothing is no better for that.
    let _camera = plays(&mut pull, Way::Tcp, now);
    now += SILENCE + Duration::from_secs(1);
    tick(&mut pull, now);
    assert!((REST_MAX..=3 * REST_MAX / 2).contains(&rest(&pull, now)));
}

/// A recorder with many cameras is switched off and on again.
#[test]
fn who_lose_their_source_at_once_do_not_ask_at_once() {
    let now = Instant::now();
    let mut tenths = [0; 5];
    for _ in 0..300 {
        let mut pull = pull(&["rtsp://127.0.0.1:9/a"], now);
        pull.trouble(Trouble::Other("it has ended the connection".to_owned()), now);
        tenths[(rest(&pull, now).as_millis() as usize - 1000).min(499) / 100] += 1;
    }
    assert!(tenths.iter().all(|count| *count > 20), "{tenths:?}");
}

/// Whoever wants TLS wants nobody else to see it.
#[test]
fn what_is_asked_for_within_tls_comes_within_it() {
    let now = Instant::now();
    let mut pull = pull(&["rtsps://127.0.0.1:9/a"], now);
    tick(&mut pull, now);
    assert_eq!(pull.way, Way::Tcp);
}

/// Cameras shut out who comes with a wrong password again and again, whatever comes then.
#[test]
fn a_password_that_was_refused_is_not_tried_again_soon() {
    let now = Instant::now();
    let mut pull = pull(&["rtsp://me:bad@127.0.0.1:9/a"], now);
    let mut dialogue = Dialogue::new(pull.address(), Way::Tcp);
    dialogue.begin();
    let said = b"RTSP/1.0 401 No\r\nWWW-Authenticate: Basic realm=\"r\"\r\n\r\n";
    let Ok(Some((crate::text::Message::Response { headers, .. }, _))) = crate::text::take(said, crate::dial::BOUNDS)
    else {
        panic!()
    };
    let mut heard = || dialogue.heard(401, &headers, &[], &mut |_| Ok(5000));
    assert!(heard().is_ok());
    pull.trouble(heard().unwrap_err(), now);
    assert!(rest(&pull, now) >= Duration::from_secs(240), "{:?}", rest(&pull, now));
}

/// Of two servers one refuses the password and the other is off, then that refuses it, too.
#[test]
fn who_has_refused_a_password_keeps_nobody_else_waiting() {
    let now = Instant::now();
    let mut pull = pull(&["rtsp://me:bad@127.0.0.1:9/a", "rtsp://me:bad@127.0.0.1:9/b"], now);
    pull.place = pull.choice.best(now);
    pull.trouble(Trouble::Refused("no".to_owned()), now);
    assert!(rest(&pull, now).is_zero());
    pull.place = pull.choice.best(now);
    for _ in 0..3 {
        pull.trouble(Trouble::Other("it is off".to_owned()), now);
        assert_eq!(pull.choice.best(now), pull.place);
        assert!(rest(&pull, now) <= 3 * REST_MAX / 2);
    }
    pull.trouble(Trouble::Refused("no".to_owned()), now);
    assert!(rest(&pull, now) >= REFUSED);
}

/// What goes wrong in one way and another in turns is told once.
#[test]
fn what_goes_wrong_is_told_once() {
    let now = Instant::now();
    let mut pull = pull(&["rtsp://127.0.0.1:9/a"], now);
    for number in 0..100 {
        pull.trouble(Trouble::Other(format!("it is off {}", number % 2)), now);
    }
    assert_eq!(pull.told, ["it is off 0", "it is off 1"]);
    (0..100).for_each(|number| pull.trouble(Trouble::Other(format!("it lies {number}")), now));
    assert_eq!(pull.told.len(), TOLD_MAX);
}

#[test]
fn what_a_source_says_is_one_line() {
    assert_eq!(plain("a\u{9b}31m\nb\u{1b}"), "a 31m b ");
    assert_eq!(plain(&"x".repeat(9000)).len(), 400);
}

/// Some cameras have their password in the path.
#[test]
fn of_an_address_is_told_only_where_it_is() {
    let now = Instant::now();
    let mut pull =
        pull(&["rtsp://me:topsecret@127.0.0.1:9/password=topsecret", "rtsp://127.0.0.1:8/password=topsecret"], now);
    let place = pull.choice.best(now);
    tick(&mut pull, now);
    let is_at = pull.source.addresses[place].to_string();
    assert_eq!(pull.stream.told().server, is_at);
    pull.trouble(Trouble::Other("it is off".to_owned()), now);
    let (server, trouble) = {
        let told = pull.stream.told();
        (told.server.clone(), told.trouble.clone().unwrap())
    };
    let told = [server, trouble, pull.told.concat()];
    assert!(told.iter().all(|text| text.contains(&is_at) && !text.contains("topsecret")), "{told:?}");
}

/// A source that asks again and again and takes no answer is given up when little is owed to it.
#[test]
fn little_is_kept_for_a_source_that_never_reads() {
    let now = Instant::now();
    let mut pull = pull(&["rtsp://127.0.0.1:9/a"], now);
    let _camera = plays(&mut pull, Way::Tcp, now);
    let Phase::Talking(talk) = &mut pull.phase else { panic!() };
    // More than the system takes on the way.
    let given_up = (0..4096).find_map(|_| {
        talk.output.extend_from_slice(&[0; 16 << 10]);
        talk.flush().err()
    });
    assert_eq!(given_up, Some(Trouble::Other("it takes nothing any more".to_owned())));
    assert!((64 << 10..96 << 10).contains(&talk.output.len()), "{}", talk.output.len());
}

/// A camera is on after many tries, ends at once again and again, and stays at last.
#[test]
fn what_plays_after_many_tries_is_told_at_once_and_once() {
    let mut now = Instant::now();
    let mut pull = pull(&["rtsp://127.0.0.1:9/a"], now);
    let playing = "playing JPEG/90000 over UDP";
    let begins = |pull: &mut Pull, now| {
        (0..4).for_each(|_| pull.trouble(Trouble::Other("it is off".to_owned()), now));
        let camera = plays(pull, Way::Tcp, now);
        let Phase::Talking(talk) = &mut pull.phase else { panic!() };
        talk.playing = Some(playing.to_owned());
        (talk.says_at_once(&mut pull.told, pull.rest), camera)
    };
    assert_eq!(begins(&mut pull, now).0.as_deref(), Some(playing));
    let (said, _camera) = begins(&mut pull, now);
    assert_eq!((said, pull.rest), (None, 30 * REST));
    now += HEALTHY + Duration::from_secs(1);
    if let Phase::Talking(talk) = &mut pull.phase {
        talk.heard = now;
    }
    tick(&mut pull, now);
    let Phase::Talking(talk) = &pull.phase else { panic!() };
    assert!(talk.playing.is_none() && pull.told.is_empty(), "it was not told when it was healthy");
    // Who says much that is different fills no log, either.
    pull.rest = REST_MAX;
    (0..TOLD_MAX).for_each(|number| pull.told.push(number.to_string()));
    assert_eq!(begins(&mut pull, now).0, None);
}

/// rtsp:// of a port at which TLS is spoken: that answers with an alert.
#[test]
fn who_speaks_tls_is_told_to_be_asked_within_it() {
    let now = Instant::now();
    for (is_playing, way) in [(false, true), (true, false)] {
        let mut pull = pull(&["rtsp://127.0.0.1:9/a"], now);
        let mut camera = plays(&mut pull, Way::Tcp, now);
        camera.write_all(b"\x15\x03\x01\x00\x02\x02\x28").unwrap();
        let Phase::Talking(talk) = &mut pull.phase else { panic!() };
        talk.is_playing = is_playing;
        talk.wire.socket().set_nonblocking(false).unwrap();
        let said = pull.read_connection(&crate::net::Poll::new().unwrap(), now);
        let Err(Trouble::Other(said)) = said else { panic!("{said:?}") };
        assert!(said.contains("no message of RTSP") && said.contains("rtsps:// is meant") == way, "{said}");
    }
}
