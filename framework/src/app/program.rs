//! What the program declares: its handlers, its `#[bindings]` structs, and so which bindings it uses.

use std::collections::BTreeMap;

use crate::config::{DeclaredBinding, Usage};
use crate::handler::{AppContext, Requirement};
use crate::registry::{
    Direction, Handler, SourceDescriptor, registered_handlers, registered_sources,
};

/// Everything of the program that an application is made of.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) handlers: Vec<Handler>,
    pub(super) sources: Vec<&'static SourceDescriptor>,
    /// Outputs that code names at run time only.
    pub(super) outputs: Vec<DeclaredBinding>,
}

impl Program {
    /// What attributes registered anywhere in the program.
    pub(super) fn registered() -> Self {
        Self {
            handlers: registered_handlers(),
            sources: registered_sources(),
            outputs: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, mut other: Self) {
        self.handlers.append(&mut other.handlers);
        self.outputs.append(&mut other.outputs);
        for source in other.sources {
            self.add_source(source);
        }
    }

    /// Adds the sources that handlers ask for by `Bound<S>`; those of the registry are there already.
    pub(super) fn add_required_sources(&mut self) {
        let required: Vec<_> = self
            .handlers
            .iter()
            .flat_map(Handler::requirements)
            .copied()
            .collect();
        for requirement in required {
            if let Requirement::Source { descriptor } = requirement {
                self.add_source(descriptor());
            }
        }
    }

    pub(super) fn add_source(&mut self, source: &'static SourceDescriptor) {
        if !self
            .sources
            .iter()
            .any(|known| std::ptr::eq(*known, source))
        {
            self.sources.push(source);
        }
    }

    /// Names of all inputs and outputs, each with where it is named.
    pub(super) fn usage(&self) -> Usage {
        let mut usage = Usage {
            outputs: self.outputs.clone(),
            ..Usage::default()
        };
        for handler in &self.handlers {
            let declared = |name: &str, what: &str| DeclaredBinding {
                name: name.to_owned(),
                by: format!("{what} `{}`", handler.name()),
                file: handler.file().to_owned(),
                line: handler.line(),
            };
            usage.inputs.push(declared(handler.binding(), "handler"));
            usage.outputs.extend(
                handler
                    .send_to()
                    .map(|output| declared(output, "`send_to` of handler")),
            );
        }
        for source in &self.sources {
            for field in source.fields {
                let declared = DeclaredBinding {
                    name: field.binding.to_owned(),
                    by: format!("field `{}` of `{}`", field.name, source.name),
                    file: source.file.to_owned(),
                    line: field.line,
                };
                match field.direction {
                    Direction::Input => usage.inputs.push(declared),
                    Direction::Output => usage.outputs.push(declared),
                }
            }
        }
        usage
    }

    /// The state that handlers need and nobody gave: type name to the handlers that need it.
    pub(super) fn missing_state(
        &self,
        context: &AppContext,
    ) -> BTreeMap<&'static str, Vec<String>> {
        let mut missing: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        for handler in &self.handlers {
            for requirement in handler.requirements() {
                if let Requirement::State { type_id, type_name } = requirement
                    && !context.contains(type_id())
                {
                    missing
                        .entry(type_name())
                        .or_default()
                        .push(handler.name().to_owned());
                }
            }
        }
        missing
    }

    /// The handlers of one input.
    pub(super) fn listeners<'a>(&'a self, input: &'a str) -> impl Iterator<Item = &'a Handler> {
        self.handlers
            .iter()
            .filter(move |handler| handler.binding().eq_ignore_ascii_case(input))
    }
}
