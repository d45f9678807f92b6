//! `multigrain-proxy`, which `multigrain proxy` starts: arguments and signals in, streams until it is told to end.

use multigrain_console::{Failure, Interrupt, print};
use multigrain_proxy::config::Args;
use multigrain_proxy::lines::say;
use multigrain_proxy::serve::Proxy;
use multigrain_proxy::shared::Again;
use multigrain_proxy::transparent::Translator;
use serde_json::json;
use std::process::ExitCode;

fn proxy(args: &Args) -> Result<(), Failure> {
    let config = args.config().map_err(Failure::Request)?;
    // Without a file there is nothing to read again: a terminal that goes ends it, as any program.
    let interrupt = if args.config.is_some() { Interrupt::install_reading_again()? } else { Interrupt::install()? };
    if let Some(device) = config.transparent.clone() {
        let translator = Translator::open(&device, config, interrupt.abort.clone()).map_err(Failure::Run)?;
        interrupt.begin();
        if args.json {
            print(&format!("{}\n", json!({ "app": "proxy", "transparent": device })))?;
        }
        say(&format!("translating what comes by {device}"));
        let ended = translator.run().map_err(Failure::Run);
        interrupt.run_is_over();
        return ended;
    }
    let names: Vec<String> = config.sources.iter().map(|source| source.name.clone()).collect();
    let asked = args.clone();
    let again = Again {
        is_wanted: interrupt.again.clone(),
        is_being_read: false.into(),
        is_told: false.into(),
        read: Box::new(move || asked.config()),
    };
    let proxy = Proxy::open(config, again, interrupt.abort.clone()).map_err(Failure::Run)?;
    interrupt.begin();
    if args.json {
        let mut object = json!({ "app": "proxy", "udp_port": proxy.udp_port, "streams": names });
        for (way, place) in &proxy.places {
            object[*way] = place.to_string().into();
        }
        print(&format!("{object}\n"))?;
    }
    let spoken = |way| if way == "listen" { "rtsp" } else { way };
    let places: Vec<String> =
        proxy.places.iter().map(|(way, place)| format!("{} at port {}", spoken(way), place.port())).collect();
    say(&format!("serving {}: {}; datagrams from port {}", names.join(", "), places.join(", "), proxy.udp_port));
    let ended = proxy.serve();
    interrupt.run_is_over();
    ended
}

fn main() -> ExitCode {
    multigrain_console::program(proxy)
}
