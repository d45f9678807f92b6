//! Who may watch: names and passwords, asked for as digests (RFC 7616, as RFC 2069 has it, which all players know) and, where
//! nobody can listen, as they are (RFC 7617).
//!
//! A challenge keeps nothing here: its nonce is a time and a keyed hash of it and of the address that asked, so whoever hears an
//! answer can use it from that address, for that path and for some minutes only. A connection is asked once.

use crate::address::Credentials;
use crate::session::path;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;

/// What is protected.
const REALM: &str = "multigrain";
/// Seconds for which an answer to a challenge holds.
const FRESH_S: u64 = 300;

/// Somebody who may watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Name and password.
    pub who: Credentials,
    /// What may be watched.
    pub streams: Streams,
}

/// Streams that somebody may watch, and knows of: these, or all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Streams(pub Option<Arc<Vec<String>>>);

impl Streams {
    /// Whether a stream is among them.
    pub fn has(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|names| names.iter().any(|one| one == name))
    }
}

/// Who somebody is, as whom he was let in; nobody in particular where nobody is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known(Option<Arc<User>>);

impl Known {
    /// What may be watched.
    pub fn streams(&self) -> Streams {
        self.0.as_ref().map(|user| user.streams.clone()).unwrap_or_default()
    }
}

/// Everybody who may watch; nobody is asked where there is none.
pub struct Users {
    all: Vec<Arc<User>>,
    key: RandomState,
}

/// What an answer is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// May watch.
    Known(Known),
    /// Right, but for a challenge of long ago.
    Stale,
    /// Nothing was said.
    Silent,
    /// Wrong.
    Wrong,
}

/// Who asks for what, and how.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// From where.
    pub peer: IpAddr,
    /// Of the request.
    pub method: &'a str,
    /// Of the request.
    pub target: &'a str,
    /// Seconds since some time.
    pub now_s: u64,
    /// Nobody can listen: it came within TLS, or from this computer.
    pub is_private: bool,
}

/// MD5 in hexadecimal digits.
fn hash(parts: &[&str]) -> String {
    let digest = Md5::digest(parts.join(":").as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares without telling by its time how much is alike.
fn is_same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

impl Users {
    /// These and nobody else; everybody, if there are none.
    pub fn new(all: Vec<User>) -> Users {
        Users { all: all.into_iter().map(Arc::new).collect(), key: RandomState::new() }
    }

    /// Others instead of these, who are asked as these were: a challenge of before is one of today's.
    pub fn anew(&self, all: Vec<User>) -> Users {
        Users { key: self.key.clone(), ..Users::new(all) }
    }

    /// As whom somebody goes on who was let in before these were read: by the same name and password, if at all.
    pub fn again(&self, known: &Known) -> Option<Known> {
        if self.is_open() {
            return Some(Known::default());
        }
        let before = known.0.as_ref()?;
        self.all.iter().find(|user| user.who == before.who).map(|user| Known(Some(user.clone())))
    }

    /// Whether anybody may watch.
    pub fn is_open(&self) -> bool {
        self.all.is_empty()
    }

    fn nonce(&self, peer: IpAddr, at_s: u64) -> String {
        format!("{at_s:08x}{:016x}", self.key.hash_one((peer, at_s)))
    }

    /// What is asked, for as many headers.
    pub fn challenges(&self, asked: Asked<'_>, verdict: &Verdict, is_secure: bool) -> Vec<String> {
        let stale = if *verdict == Verdict::Stale { ", stale=true" } else { "" };
        let nonce = self.nonce(asked.peer, asked.now_s);
        let digest = format!("Digest realm=\"{REALM}\", nonce=\"{nonce}\", algorithm=MD5{stale}");
        let basic = is_secure.then(|| format!("Basic realm=\"{REALM}\""));
        std::iter::once(digest).chain(basic).collect()
    }

    /// Looks at an answer: the value of an Authorization header.
    pub fn judge(&self, answer: Option<&str>, asked: Asked<'_>) -> Verdict {
        if self.is_open() {
            return Verdict::Known(Known::default());
        }
        let Some(text) = answer else { return Verdict::Silent };
        let Some((scheme, rest)) = text.trim().split_once(' ') else { return Verdict::Wrong };
        match scheme.to_ascii_lowercase().as_str() {
            // Whoever tells a password where others can listen is asked as if nothing had been said, or it would never be found out.
            "basic" if !asked.is_private => Verdict::Silent,
            "basic" => self.basic(rest.trim()),
            "digest" => self.digest(text, asked).unwrap_or(Verdict::Wrong),
            _ => Verdict::Wrong,
        }
    }

    fn basic(&self, text: &str) -> Verdict {
        let told = STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        // All are compared, whichever it is; hashes, since these have one length.
        let told = hash(&[&told]);
        let all = self.all.iter().filter(|user| is_same(&hash(&[&user.who.user, &user.who.password]), &told));
        all.fold(Verdict::Wrong, |_, user| Verdict::Known(Known(Some(user.clone()))))
    }

    fn digest(&self, answer: &str, asked: Asked<'_>) -> Option<Verdict> {
        let challenges = http_auth::parse_challenges(answer).ok()?;
        let [one] = challenges.as_slice() else { return None };
        let get = |name: &str| {
            let found = one.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.to_unescaped())
        };
        let (name, realm, nonce, uri) = (get("username")?, get("realm")?, get("nonce")?, get("uri")?);
        let fits = uri == asked.target || (path(&uri).0 == path(asked.target).0 && uri.contains("://"));
        if realm != REALM || !fits || get("algorithm").is_some_and(|told| !told.eq_ignore_ascii_case("md5")) {
            return None;
        }
        let at_s = u64::from_str_radix(nonce.get(..8)?, 16).ok()?;
        // Who answers a challenge that is not of this run, or was another's, and knows the password, is asked anew (section 3.3).
        let is_own = is_same(&nonce, &self.nonce(asked.peer, at_s));
        let user = self.all.iter().find(|user| user.who.user == name);
        let password = user.map_or("", |user| user.who.password.as_str());
        let secret = hash(&[&name, REALM, password]);
        let request = hash(&[asked.method, &uri]);
        let right = match get("qop") {
            None => hash(&[&secret, &nonce, &request]),
            Some(qop) => hash(&[&secret, &nonce, &get("nc")?, &get("cnonce")?, &qop, &request]),
        };
        let is_right = is_same(&right, &get("response")?.to_ascii_lowercase());
        let user = user.filter(|_| is_right)?;
        let is_fresh = is_own && asked.now_s.checked_sub(at_s).is_some_and(|age| age <= FRESH_S);
        Some(if is_fresh { Verdict::Known(Known(Some(user.clone()))) } else { Verdict::Stale })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_auth::{PasswordClient, PasswordParams};
    use proptest::prelude::*;

    fn eve() -> User {
        User { who: Credentials { user: "eve".to_owned(), password: "pass:\"word".to_owned() }, streams: door() }
    }

    fn users() -> Users {
        Users::new(vec![eve()])
    }

    fn known() -> Known {
        Known(Some(Arc::new(eve())))
    }

    #[test]
    fn who_is_known_goes_on_by_the_same_password_only() {
        let all = Streams::default();
        let others = Users::new(vec![User { streams: all.clone(), ..eve() }]);
        assert_eq!(others.again(&known()).map(|known| known.streams()), Some(all));
        let mut other = eve();
        other.who.password.push('x');
        assert_eq!(Users::new(vec![other]).again(&known()), None);
        assert_eq!(users().again(&Known::default()), None);
        assert_eq!(Users::new(Vec::new()).again(&known()), Some(Known::default()));
    }

    fn door() -> Streams {
        Streams(Some(Arc::new(vec!["door".to_owned()])))
    }

    fn asked(target: &str, now_s: u64) -> Asked<'_> {
        Asked { peer: "10.0.0.1".parse().unwrap(), method: "DESCRIBE", target, now_s, is_private: false }
    }

    #[test]
    fn who_knows_the_password_is_let_in() {
        let users = users();
        let url = "rtsp://h/front";
        assert_eq!(users.judge(None, asked(url, 5)), Verdict::Silent);
        for (secure, password, expected) in [
            (false, "pass:\"word", Verdict::Known(known())),
            (true, "pass:\"word", Verdict::Known(known())),
            (false, "other", Verdict::Wrong),
        ] {
            let challenges = users.challenges(asked(url, 5), &Verdict::Silent, secure);
            assert_eq!(challenges.len(), 1 + usize::from(secure));
            let mut client = PasswordClient::try_from(challenges.last().unwrap().as_str()).unwrap();
            let params = PasswordParams { username: "eve", password, uri: url, method: "DESCRIBE", body: Some(&[]) };
            let answer = client.respond(&params).unwrap();
            let private = Asked { is_private: secure, ..asked(url, 6) };
            assert_eq!(users.judge(Some(&answer), private), expected, "{answer}");
            if secure {
                assert_eq!(users.judge(Some(&answer), asked(url, 6)), Verdict::Silent, "{answer}");
            }
            if answer.starts_with("Digest") {
                assert_eq!(users.judge(Some(&answer), asked("rtsp://h/yard", 6)), Verdict::Wrong);
                let later = if password == "other" { Verdict::Wrong } else { Verdict::Stale };
                assert_eq!(users.judge(Some(&answer), asked(url, 999)), later);
                let elsewhere = Asked { peer: "10.0.0.2".parse().unwrap(), ..asked(url, 6) };
                assert_eq!(users.judge(Some(&answer), elsewhere), later);
                // The file was read again; the program was started again.
                assert_eq!(users.anew(vec![eve()]).judge(Some(&answer), asked(url, 6)), expected);
                assert_eq!(super::tests::users().judge(Some(&answer), asked(url, 6)), later);
            }
        }
        assert_eq!(Users::new(Vec::new()).judge(None, asked(url, 0)), Verdict::Known(Known::default()));
        assert!(door().has("door") && !door().has("yard") && Streams::default().has("yard"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(300)) })]

        #[test]
        fn nonsense_does_no_harm_and_lets_nobody_in(text in prop_oneof![
            "(Basic|Digest) [ -~]{0,60}",
            "Digest (username=\"eve\", )?(realm=\"multigrain\", )?(nonce=\"[0-9a-fé]{0,30}\", )?uri=\"rtsp://h/front\", response=\"[0-9a-f]{0,32}\"",
        ]) {
            prop_assert_eq!(users().judge(Some(&text), Asked { is_private: true, ..asked("rtsp://h/front", 5) }), Verdict::Wrong);
        }
    }
}
