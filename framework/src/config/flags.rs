//! What a program can be asked about its configuration instead of running.

/// The `--bindery.*` arguments that are requests and not settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--bindery.check`: check the configuration and stop.
    pub check: bool,
    /// `--bindery.schema`: print the JSON schema and stop.
    pub schema: bool,
    /// `--bindery.explain=KEY`: tell about one key and stop.
    pub explain: Option<String>,
    /// `--bindery.json`: reports are JSON.
    pub json: bool,
}

impl Flags {
    /// Reads them from the arguments of the command line; answers the arguments that are left, settings among them.
    /// `--json` is taken as well as `--bindery.json`.
    #[must_use]
    pub fn parse(args: &[String]) -> (Self, Vec<String>) {
        let mut flags = Self::default();
        let rest = args
            .iter()
            .filter(|argument| !flags.take(argument))
            .cloned()
            .collect();
        (flags, rest)
    }

    fn take(&mut self, argument: &str) -> bool {
        let (key, value) = argument
            .split_once('=')
            .map_or((argument, None), |(key, value)| (key, Some(value)));
        let on = value != Some("false");
        match key {
            "--bindery.check" => self.check = on,
            "--bindery.schema" => self.schema = on,
            "--bindery.json" | "--json" => self.json = on,
            "--bindery.explain" => self.explain = value.map(str::to_owned),
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_from_settings() {
        let args = [
            "--bindery.check",
            "--json",
            "--bindery.explain=server.port",
            "--bindery.embedded=true",
            "x",
        ];
        let (flags, rest) = Flags::parse(&args.map(str::to_owned));
        assert_eq!(
            flags,
            Flags {
                check: true,
                schema: false,
                explain: Some("server.port".to_owned()),
                json: true
            }
        );
        assert_eq!(rest, ["--bindery.embedded=true", "x"]);
    }
}
