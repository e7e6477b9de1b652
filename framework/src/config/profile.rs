//! Profiles: which documents count.
//!
//! ```text
//! spring.profiles.{active, include, group, default} ──▶ active profiles, weakest first
//! spring.config.activate.on-profile: "prod & !eu" ──parse──▶ ProfileExpression ──holds(active)──▶ document counts or not
//! ```

/// A condition over active profiles: names, `!`, `&`, `|` and parentheses. As in Spring, `&` and `|` don't mix without
/// parentheses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProfileExpression {
    Named(String),
    Not(Box<Self>),
    All(Vec<Self>),
    Any(Vec<Self>),
}

/// The expression is not one; holds what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MalformedProfile(pub(crate) &'static str);

impl ProfileExpression {
    /// Several expressions of which one must hold. No expression at all holds always.
    pub(crate) fn any_of<'a>(
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Result<Option<Self>, MalformedProfile> {
        let expressions = texts
            .into_iter()
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(Self::parse)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(if expressions.is_empty() {
            None
        } else {
            Some(Self::Any(expressions))
        })
    }

    fn parse(text: &str) -> Result<Self, MalformedProfile> {
        let mut parser = Parser {
            chars: text.chars().collect(),
            at: 0,
            depth: 0,
        };
        let expression = parser.operands()?;
        match parser.peek() {
            None => Ok(expression),
            Some(_) => Err(MalformedProfile("there is a `)` without `(`")),
        }
    }

    /// Whether it holds when exactly `active` are active.
    pub(crate) fn holds(&self, active: &[String]) -> bool {
        match self {
            Self::Named(name) => active.contains(name),
            Self::Not(inner) => !inner.holds(active),
            Self::All(parts) => parts.iter().all(|part| part.holds(active)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(active)),
        }
    }
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn peek(&mut self) -> Option<char> {
        while self.chars.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.chars.get(self.at).copied()
    }

    fn operands(&mut self) -> Result<ProfileExpression, MalformedProfile> {
        let first = self.operand()?;
        let Some(operator @ ('&' | '|')) = self.peek() else {
            return Ok(first);
        };
        let mut parts = vec![first];
        while let Some(next @ ('&' | '|')) = self.peek() {
            if next != operator {
                return Err(MalformedProfile(
                    "`&` and `|` need parentheses between them",
                ));
            }
            self.at += 1;
            parts.push(self.operand()?);
        }
        Ok(if operator == '&' {
            ProfileExpression::All(parts)
        } else {
            ProfileExpression::Any(parts)
        })
    }

    fn operand(&mut self) -> Result<ProfileExpression, MalformedProfile> {
        self.depth += 1;
        if self.depth > 64 {
            return Err(MalformedProfile("it is nested too deeply"));
        }
        let operand = match self.peek() {
            Some('!') => {
                self.at += 1;
                ProfileExpression::Not(Box::new(self.operand()?))
            }
            Some('(') => {
                self.at += 1;
                let inner = self.operands()?;
                if self.peek() != Some(')') {
                    return Err(MalformedProfile("a `(` is not closed"));
                }
                self.at += 1;
                inner
            }
            _ => self.name()?,
        };
        self.depth -= 1;
        Ok(operand)
    }

    fn name(&mut self) -> Result<ProfileExpression, MalformedProfile> {
        let start = self.at;
        while self
            .chars
            .get(self.at)
            .is_some_and(|c| !"&|!()".contains(*c))
        {
            self.at += 1;
        }
        let name: String = self.chars[start..self.at].iter().collect();
        match name.trim() {
            "" => Err(MalformedProfile("a profile name is missing")),
            name => Ok(ProfileExpression::Named(name.to_owned())),
        }
    }
}

/// What the sources say about profiles.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProfileChoice {
    pub(crate) active: Vec<String>,
    pub(crate) include: Vec<String>,
    pub(crate) default: Vec<String>,
    /// Group name to members.
    pub(crate) groups: Vec<(String, Vec<String>)>,
}

impl ProfileChoice {
    /// The active profiles, weakest first: included ones, then the named ones, each followed by its group.
    pub(crate) fn resolve(&self) -> Vec<String> {
        let mut profiles = Vec::new();
        let named = if self.active.is_empty() {
            &self.default
        } else {
            &self.active
        };
        for profile in self.include.iter().chain(named) {
            self.add(profile, &mut profiles);
        }
        if self.active.is_empty() && self.default.is_empty() {
            self.add("default", &mut profiles);
        }
        profiles
    }

    fn add(&self, profile: &str, profiles: &mut Vec<String>) {
        if profiles.iter().any(|known| known == profile) {
            return;
        }
        profiles.push(profile.to_owned());
        for (_, members) in self.groups.iter().filter(|(group, _)| group == profile) {
            for member in members {
                self.add(member, profiles);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str, active: &[&str]) -> Result<bool, MalformedProfile> {
        let active: Vec<String> = active.iter().map(|&name| name.to_owned()).collect();
        Ok(ProfileExpression::any_of(text.split(','))?
            .is_none_or(|expression| expression.holds(&active)))
    }

    #[test]
    fn expressions_hold_as_in_spring() {
        for (text, active, expected) in [
            ("prod", &["prod"][..], true),
            ("!prod", &["dev"], true),
            ("prod & dev", &["prod"], false),
            ("prod | dev", &["dev"], true),
            ("(prod & dev) | test", &["test"], true),
            ("prod, dev", &["dev"], true),
            ("", &["dev"], true),
            ("PROD", &["prod"], false),
            ("pr*", &["prod"], false),
        ] {
            assert_eq!(holds(text, active), Ok(expected), "{text} with {active:?}");
        }
        for text in ["prod & dev | test", "(prod", "prod)", "!", "&", "a & "] {
            assert!(holds(text, &[]).is_err(), "{text}");
        }
    }

    #[test]
    fn groups_follow_their_name_and_included_profiles_are_weaker() {
        let names = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        let choice = ProfileChoice {
            active: names("all,x"),
            include: names("base"),
            default: Vec::new(),
            groups: vec![("all".to_owned(), names("prod,dev,all"))],
        };
        assert_eq!(choice.resolve(), names("base,all,prod,dev,x"));
        assert_eq!(ProfileChoice::default().resolve(), ["default"]);
    }
}
