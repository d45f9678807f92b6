//! `multigrain-proxy`, which `multigrain proxy` starts: arguments and signals in, streams until it is told to end.

use multigrain_console::{Failure, Interrupt, print, say};
use multigrain_proxy::config::Args;
use multigrain_proxy::serve::Proxy;
use serde_json::json;
use std::process::ExitCode;

fn proxy(args: &Args) -> Result<(), Failure> {
    let config = args.config().map_err(Failure::Request)?;
    let interrupt = Interrupt::install()?;
    let names: Vec<String> = config.sources.iter().map(|source| source.name.clone()).collect();
    let proxy = Proxy::open(config, interrupt.abort.clone()).map_err(Failure::Run)?;
    interrupt.begin();
    if args.json {
        let object = json!({
            "app": "proxy",
            "listen": proxy.listen.to_string(),
            "http": proxy.http.map(|place| place.to_string()),
            "udp_port": proxy.udp_port,
            "streams": names,
        });
        print(&format!("{object}\n"))?;
    }
    say(&format!(
        "serving {} at port {}, datagrams from port {}",
        names.join(", "),
        proxy.listen.port(),
        proxy.udp_port
    ));
    let ended = proxy.serve().map_err(Failure::Run);
    interrupt.run_is_over();
    ended
}

fn main() -> ExitCode {
    multigrain_console::program(proxy)
}
