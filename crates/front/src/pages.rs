//! The commands `completions` and `man`: what the definitions of the command and of the programs beside it say, to a shell and
//! to people.

use crate::Front;
use clap_complete::Shell;
use clap_mangen::Man;
use multigrain_console::{Failure, print, write_whole};
use std::path::{Path, PathBuf};

/// Completions of commands, options and their values, for a shell
///
/// Among them those of the programs that lie beside the command. For bash: `source <(COMMAND completions bash)`; for zsh into a
/// file _COMMAND on its fpath; for fish into ~/.config/fish/completions/COMMAND.fish.
#[derive(clap::Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Manual pages of the command, its subcommands, and the programs beside it
#[derive(clap::Args, Debug)]
pub(crate) struct ManArgs {
    /// The directory that they are written into, such as ~/.local/share/man/man1
    directory: PathBuf,
}

fn whole(front: &Front) -> clap::Command {
    front.with_definitions(front.own())
}

pub(crate) fn completions(front: &Front, args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut whole(front), front.name, &mut script);
    let script = String::from_utf8(script).map_err(|e| Failure::Run(format!("internal error: {e}")))?;
    print(&script)
}

pub(crate) fn man(front: &Front, args: &ManArgs) -> Result<(), Failure> {
    if !args.directory.is_dir() {
        let directory = args.directory.display();
        return Err(Failure::Request(format!("{directory} is no directory; make it, or name another")));
    }
    let mut command = whole(front).disable_help_subcommand(true);
    command.build();
    written(&command, &args.directory)
}

/// One page for the command, and those of its subcommands.
fn written(command: &clap::Command, directory: &Path) -> Result<(), Failure> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set()).try_for_each(|sub| written(sub, directory))?;
    let page = Man::new(command.clone());
    let path = directory.join(page.get_filename());
    let mut text = Vec::new();
    page.render(&mut text).map_err(|e| Failure::Run(format!("cannot make {}: {e}", path.display())))?;
    write_whole(&path, &String::from_utf8_lossy(&text))
}
