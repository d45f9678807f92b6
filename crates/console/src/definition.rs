//! What a program's options are, told from one program to another.
//!
//! A command that finds programs beside itself shows their options too, in completions and manual pages, and has not compiled
//! them. So a program that is asked with the one argument [`ASK`] prints its definition as JSON, and the command makes the same
//! definition of it again: names, texts, values; nothing of what is done with them.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, ValueHint};
use serde::{Deserialize, Serialize};

/// The argument that asks a program what its options are.
pub const ASK: &str = "--definition-as-json";

#[derive(Serialize, Deserialize)]
struct Definition {
    version: Option<String>,
    about: Option<String>,
    long_about: Option<String>,
    arguments: Vec<Argument>,
}

#[derive(Serialize, Deserialize)]
struct Argument {
    id: String,
    short: Option<char>,
    long: Option<String>,
    help: Option<String>,
    long_help: Option<String>,
    heading: Option<String>,
    /// Names of its values; none of a flag.
    values: Vec<String>,
    /// Values to choose from, with what they mean.
    choice: Vec<(String, Option<String>)>,
    defaults: Vec<String>,
    hint: String,
    repeats: bool,
    required: bool,
    hidden: bool,
}

impl Argument {
    fn of(arg: &Arg) -> Argument {
        let names = arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string);
        let takes_values = arg.get_action().takes_values();
        let choice = if takes_values { arg.get_possible_values() } else { Vec::new() };
        let choice = choice.iter().filter(|value| !value.is_hide_set());
        Argument {
            id: arg.get_id().to_string(),
            short: arg.get_short(),
            long: arg.get_long().map(str::to_owned),
            help: arg.get_help().map(ToString::to_string),
            long_help: arg.get_long_help().map(ToString::to_string),
            heading: arg.get_help_heading().map(str::to_owned),
            values: if takes_values { names.collect() } else { Vec::new() },
            choice: choice.map(|v| (v.get_name().to_owned(), v.get_help().map(ToString::to_string))).collect(),
            defaults: match takes_values {
                true => arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect(),
                false => Vec::new(),
            },
            hint: format!("{:?}", arg.get_value_hint()),
            repeats: matches!(arg.get_action(), ArgAction::Append | ArgAction::Count)
                || arg.get_num_args().is_some_and(|count| count.max_values() > count.min_values().max(1)),
            required: arg.is_required_set(),
            hidden: arg.is_hide_set(),
        }
    }

    fn arg(self) -> Arg {
        let mut arg = Arg::new(self.id).required(self.required).hide(self.hidden);
        arg = match (self.values.is_empty(), self.repeats) {
            (true, false) => arg.action(ArgAction::SetTrue),
            (true, true) => arg.action(ArgAction::Count),
            (false, false) => arg.action(ArgAction::Set),
            (false, true) => arg.action(ArgAction::Append),
        };
        if !self.values.is_empty() {
            arg = arg.value_names(self.values).value_hint(self.hint.parse().unwrap_or(ValueHint::Unknown));
            if self.repeats && self.long.is_none() {
                arg = arg.num_args(1..);
            }
        }
        if !self.choice.is_empty() {
            let value = |(name, help): (String, Option<String>)| {
                let value = clap::builder::PossibleValue::new(name);
                help.into_iter().fold(value, |value, help| value.help(help))
            };
            arg = arg.value_parser(PossibleValuesParser::new(self.choice.into_iter().map(value)));
        }
        if !self.defaults.is_empty() {
            arg = arg.default_values(self.defaults);
        }
        arg = self.short.into_iter().fold(arg, Arg::short);
        arg = self.long.into_iter().fold(arg, Arg::long);
        arg = self.help.into_iter().fold(arg, Arg::help);
        arg = self.long_help.into_iter().fold(arg, Arg::long_help);
        self.heading.into_iter().fold(arg, Arg::help_heading)
    }
}

/// A program's definition as one line of JSON.
pub fn told(mut command: Command) -> String {
    command.build();
    let own = |arg: &&Arg| !matches!(arg.get_id().as_str(), "help" | "version");
    let definition = Definition {
        version: command.get_version().map(str::to_owned),
        about: command.get_about().map(ToString::to_string),
        long_about: command.get_long_about().map(ToString::to_string),
        arguments: command.get_arguments().filter(own).map(Argument::of).collect(),
    };
    // Strings, flags and lists: there is nothing in it that JSON has not.
    serde_json::to_string(&definition).unwrap_or_default() + "\n"
}

/// The definition of a program, as the subcommand `name`; nothing where the text is none.
pub fn understood(name: &'static str, told: &str) -> Option<Command> {
    let definition: Definition = serde_json::from_str(told).ok()?;
    let command = Command::new(name).args(definition.arguments.into_iter().map(Argument::arg));
    let command = definition.version.into_iter().fold(command, Command::version);
    let command = definition.about.into_iter().fold(command, Command::about);
    Some(definition.long_about.into_iter().fold(command, Command::long_about))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser, ValueEnum};
    use std::path::PathBuf;

    #[derive(Clone, Copy, ValueEnum)]
    enum Kind {
        /// Left hand
        Left,
        Right,
    }

    /// Does something
    ///
    /// And says more of it.
    #[derive(Parser)]
    #[command(name = "some", version = "7.1")]
    #[allow(dead_code)]
    struct Some {
        /// What is read
        input: PathBuf,
        /// More of it
        more: Vec<String>,
        /// Which
        ///
        /// The longer text.
        #[arg(short, long, default_value = "left", help_heading = "Hands")]
        kind: Kind,
        /// Somebody
        #[arg(short = 'r', long = "recipient", value_name = "KEY")]
        recipients: Vec<String>,
        #[arg(long)]
        flag: bool,
        #[arg(short, action = ArgAction::Count)]
        verbose: u8,
        #[arg(long, hide = true)]
        secret: Option<u32>,
    }

    /// What is told twice is the same, so nothing that is told is lost on the way.
    #[test]
    fn a_definition_survives_the_way() {
        let told = super::told(Some::command());
        let again = understood("some", &told).unwrap();
        assert_eq!(super::told(again), told);
        let mut again = understood("some", &told).unwrap();
        let (mut help, mut own) =
            (again.render_long_help().to_string(), Some::command().render_long_help().to_string());
        assert_eq!(help, own);
        (help, own) = (again.render_usage().to_string(), Some::command().render_usage().to_string());
        assert_eq!(help, own);
        again.debug_assert();
        assert!(understood("some", "usage: some FILE").is_none());
    }
}
