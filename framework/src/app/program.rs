//! What the program declares: its handlers, its `#[bindings]` structs, and so which bindings it uses.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::config::{DeclaredBinding, ProducerConfig, Usage};
use crate::error::{Error, Result};
use crate::error_handler::{ErrorHandler, Target};
use crate::handler::{AppContext, Requirement};
use crate::partition::{KeyExtractor, PartitionCode, PartitionSelector};
use crate::registry::{
    Direction, Handler, MakeListener, SourceDescriptor, registered_error_handlers,
    registered_handlers, registered_key_extractors, registered_partition_selectors,
    registered_sources, registered_transaction_listeners,
};
use crate::transaction::ListenerHandle;

/// Everything of the program that an application is made of.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) handlers: Vec<Handler>,
    pub(crate) sources: Vec<&'static SourceDescriptor>,
    /// Outputs that code names at run time only.
    pub(crate) outputs: Vec<DeclaredBinding>,
    pub(crate) listeners: Vec<Listening>,
    /// What is put around every transaction listener.
    pub(crate) around_listeners: Around,
    pub(crate) error_handlers: Vec<ErrorHandler>,
    pub(super) key_extractors: Vec<Named<KeyExtractor>>,
    pub(super) partition_selectors: Vec<Named<PartitionSelector>>,
}

/// Code that configuration calls by a name, and where the program has it from.
#[derive(Debug)]
pub(super) struct Named<T> {
    pub(super) declared: DeclaredBinding,
    pub(super) code: T,
}

/// A transaction listener, and where the program has it from.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) declared: DeclaredBinding,
    pub(super) origin: Origin,
}

/// Where a transaction listener comes from.
#[derive(Debug)]
pub(crate) enum Origin {
    /// `AppBuilder::transaction_listener`.
    Given(ListenerHandle),
    /// The attribute; built by `FromApp`.
    Attribute {
        type_name: &'static str,
        make: MakeListener,
    },
}

/// Something that is put around transaction listeners, or nothing.
#[derive(Clone, Default)]
pub(crate) struct Around(
    pub(crate) Option<Arc<dyn Fn(ListenerHandle) -> ListenerHandle + Send + Sync>>,
);

impl Around {
    fn put(&self, listener: ListenerHandle) -> ListenerHandle {
        match &self.0 {
            Some(around) => around(listener),
            None => listener,
        }
    }
}

impl fmt::Debug for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Around").field(&self.0.is_some()).finish()
    }
}

impl Program {
    /// What attributes registered anywhere in the program.
    pub(super) fn registered() -> Self {
        Self {
            handlers: registered_handlers(),
            sources: registered_sources(),
            outputs: Vec::new(),
            listeners: registered_listeners(),
            error_handlers: registered_error_handlers(),
            key_extractors: registered_extractors(),
            partition_selectors: registered_selectors(),
            around_listeners: Around::default(),
        }
    }

    pub(super) fn add(&mut self, mut other: Self) {
        self.handlers.append(&mut other.handlers);
        self.outputs.append(&mut other.outputs);
        self.listeners.append(&mut other.listeners);
        self.error_handlers.append(&mut other.error_handlers);
        self.key_extractors.append(&mut other.key_extractors);
        self.partition_selectors
            .append(&mut other.partition_selectors);
        for source in other.sources {
            self.add_source(source);
        }
    }

    /// Adds the sources that handlers ask for by `Bound<S>`; those of the registry are there already.
    pub(super) fn add_required_sources(&mut self) {
        let required: Vec<Requirement> =
            self.requirements().map(|(_, required)| *required).collect();
        for requirement in required {
            if let Requirement::Source { descriptor } = requirement {
                self.add_source(descriptor());
            }
        }
    }

    /// What handlers and error handlers require of the application, each with the name of who does.
    fn requirements(&self) -> impl Iterator<Item = (&str, &Requirement)> {
        let handlers = self
            .handlers
            .iter()
            .map(|handler| (handler.name(), handler.requirements()));
        let error_handlers = self
            .error_handlers
            .iter()
            .map(|handler| (handler.name(), handler.requirements()));
        handlers
            .chain(error_handlers)
            .flat_map(|(name, required)| required.iter().map(move |one| (name, one)))
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
    pub(crate) fn usage(&self) -> Usage {
        let mut usage = Usage {
            outputs: self.outputs.clone(),
            transaction_listeners: self
                .listeners
                .iter()
                .map(|listening| listening.declared.clone())
                .collect(),
            error_handlers: self.declared_error_handlers(),
            error_handler_names: self
                .error_handlers
                .iter()
                .map(|handler| handler.declared(handler.name()))
                .collect(),
            key_extractors: declared(&self.key_extractors),
            partition_selectors: declared(&self.partition_selectors),
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

    /// The error handlers that are for a binding, by its name.
    fn declared_error_handlers(&self) -> Vec<DeclaredBinding> {
        let of_binding = |handler: &ErrorHandler| match handler.target() {
            Target::Binding(binding) => Some(handler.declared(binding)),
            Target::Default | Target::Named => None,
        };
        self.error_handlers.iter().filter_map(of_binding).collect()
    }

    /// The state that handlers need and nobody gave: type name to the handlers that need it.
    pub(super) fn missing_state(
        &self,
        context: &AppContext,
    ) -> BTreeMap<&'static str, Vec<String>> {
        let mut missing: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        for (name, requirement) in self.requirements() {
            if let Requirement::State { type_id, type_name } = requirement
                && !context.contains(type_id())
            {
                let needed_by = missing.entry(type_name()).or_default();
                needed_by.push(name.to_owned());
            }
        }
        missing
    }

    /// The transaction listeners of these names, each built once.
    pub(super) fn transaction_listeners<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
        context: &AppContext,
    ) -> Result<BTreeMap<String, ListenerHandle>> {
        let mut built = BTreeMap::new();
        for name in names {
            if !built.contains_key(name) {
                let listener = self.listener(name, context)?;
                built.insert(name.to_owned(), self.around_listeners.put(listener));
            }
        }
        Ok(built)
    }

    /// The configuration's check has refused names that the program does not have.
    fn listener(&self, name: &str, context: &AppContext) -> Result<ListenerHandle> {
        let listening = self
            .listeners
            .iter()
            .find(|listening| listening.declared.name == name);
        match listening.map(|listening| &listening.origin) {
            Some(Origin::Given(listener)) => Ok(listener.clone()),
            Some(Origin::Attribute { type_name, make }) => {
                make(name, context).map_err(|source| Error::TransactionListener {
                    name: name.to_owned(),
                    type_name: (*type_name).to_owned(),
                    source,
                })
            }
            None => Err(Error::TransactionListener {
                name: name.to_owned(),
                type_name: "?".to_owned(),
                source: "the program has no listener of this name".into(),
            }),
        }
    }

    /// The code that an output's partitions are chosen by; the configuration's check has refused names that are not there.
    pub(super) fn partition_code(&self, output: &ProducerConfig) -> PartitionCode {
        PartitionCode {
            extractor: find(
                &self.key_extractors,
                output.partition_key_extractor.as_deref(),
            ),
            selector: find(
                &self.partition_selectors,
                output.partition_selector.as_deref(),
            ),
        }
    }

    /// The handlers of one input.
    pub(super) fn listeners<'a>(&'a self, input: &'a str) -> impl Iterator<Item = &'a Handler> {
        self.handlers
            .iter()
            .filter(move |handler| handler.binding().eq_ignore_ascii_case(input))
    }
}

fn declared<T>(all: &[Named<T>]) -> Vec<DeclaredBinding> {
    all.iter().map(|named| named.declared.clone()).collect()
}

fn find<T: Clone>(all: &[Named<T>], name: Option<&str>) -> Option<T> {
    let named = all
        .iter()
        .find(|named| Some(named.declared.name.as_str()) == name)?;
    Some(named.code.clone())
}

fn registered_extractors() -> Vec<Named<KeyExtractor>> {
    let all = registered_key_extractors().into_iter();
    all.map(|descriptor| Named {
        declared: DeclaredBinding {
            name: descriptor.name.to_owned(),
            by: format!("function `{}`", descriptor.function),
            file: descriptor.file.to_owned(),
            line: descriptor.line,
        },
        code: KeyExtractor::from_function(descriptor.name, descriptor.extract),
    })
    .collect()
}

fn registered_selectors() -> Vec<Named<PartitionSelector>> {
    let all = registered_partition_selectors().into_iter();
    all.map(|descriptor| Named {
        declared: DeclaredBinding {
            name: descriptor.name.to_owned(),
            by: format!("function `{}`", descriptor.function),
            file: descriptor.file.to_owned(),
            line: descriptor.line,
        },
        code: PartitionSelector::new(descriptor.name, descriptor.select),
    })
    .collect()
}

fn registered_listeners() -> Vec<Listening> {
    let of_attributes = registered_transaction_listeners().into_iter();
    of_attributes
        .map(|descriptor| Listening {
            declared: DeclaredBinding {
                name: descriptor.name.to_owned(),
                by: format!("`{}`", descriptor.type_name),
                file: descriptor.file.to_owned(),
                line: descriptor.line,
            },
            origin: Origin::Attribute {
                type_name: descriptor.type_name,
                make: descriptor.make,
            },
        })
        .collect()
}
