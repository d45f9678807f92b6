//! The Transport header of RTSP (RFC 2326, section 12.39): how media go, as one end asks for it or the other has set it up.

/// One of the alternatives of a header.
#[derive(Clone, Copy, Debug)]
pub struct Transport<'a> {
    text: &'a str,
}

/// The alternatives, the first is liked best.
pub fn alternatives(header: &str) -> impl Iterator<Item = Transport<'_>> {
    header.split(',').map(|text| Transport { text: text.trim() })
}

impl<'a> Transport<'a> {
    fn is(&self, names: &[&str]) -> bool {
        let protocol = self.text.split(';').next().unwrap_or_default().trim();
        names.iter().any(|name| protocol.eq_ignore_ascii_case(name))
    }

    /// Within the connection.
    pub fn is_within(&self) -> bool {
        self.is(&["RTP/AVP/TCP"])
    }

    /// As datagrams.
    pub fn is_datagrams(&self) -> bool {
        self.is(&["RTP/AVP", "RTP/AVP/UDP"])
    }

    fn parameters(&self) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
        let parts = self.text.split(';').skip(1).map(str::trim);
        parts.map(|part| part.split_once('=').map_or((part, None), |(name, value)| (name.trim(), Some(value.trim()))))
    }

    /// To a group.
    pub fn is_multicast(&self) -> bool {
        self.parameters().any(|(name, _)| name.eq_ignore_ascii_case("multicast"))
    }

    /// The value of a parameter, if it has one.
    pub fn value(&self, name: &str) -> Option<&'a str> {
        self.parameters().find(|(other, _)| other.eq_ignore_ascii_case(name)).and_then(|(_, value)| value)
    }

    /// Two numbers, or one and the next; nothing where they have no room.
    pub fn pair<T: TryFrom<u32>>(&self, name: &str) -> Option<(T, T)> {
        let text = self.value(name)?;
        let (first, second) = text.split_once('-').map_or((text, None), |(first, second)| (first, Some(second)));
        let first: u32 = first.trim().parse().ok()?;
        let second = second.map_or(first.checked_add(1), |second| second.trim().parse().ok())?;
        Some((first.try_into().ok()?, second.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_ends_say_is_read_alike() {
        let header = "RTP/AVP;multicast;port=7000-7001;ttl=1, rtp/avp/tcp; Interleaved = 2 - 3;mode=\"PLAY\",RTP/AVP/UDP;unicast;client_port=5000";
        let all: Vec<Transport<'_>> = alternatives(header).collect();
        assert_eq!(all.iter().map(Transport::is_within).collect::<Vec<_>>(), [false, true, false]);
        assert_eq!(all.iter().map(Transport::is_datagrams).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(all.iter().map(Transport::is_multicast).collect::<Vec<_>>(), [true, false, false]);
        assert_eq!((all[1].pair::<u8>("interleaved"), all[1].value("mode")), (Some((2, 3)), Some("\"PLAY\"")));
        assert_eq!((all[2].pair::<u16>("client_port"), all[2].value("unicast")), (Some((5000, 5001)), None));
        for none in ["", "x", "5-", "-5", "5-x", "255", "256-257", "-1", "5-6-7"] {
            let header = format!("RTP/AVP/TCP;interleaved={none}");
            assert_eq!(alternatives(&header).next().unwrap().pair::<u8>("interleaved"), None, "{none}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(500)) })]

        #[test]
        fn random_headers_do_no_harm(header in prop_oneof!["[ -~]{0,60}", "(RTP/AVP(/TCP|/UDP)?(;[a-z_]{1,8}(=[0-9-]{0,12})?){0,4},?){0,3}"]) {
            for transport in alternatives(&header) {
                let _ = (transport.is_within(), transport.is_datagrams(), transport.is_multicast());
                let both = (transport.pair::<u8>("interleaved"), transport.pair::<u16>("client_port"));
                prop_assert!(both.0.is_none() || transport.value("interleaved").is_some());
            }
        }
    }
}
