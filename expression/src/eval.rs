//! The evaluator.
//!
//! ```text
//! payload['customer'].id + 1
//! └───── one path ──────┘      Root::follow(["payload", "customer", "id"]) ─▶ value, then the remaining steps
//! ```

use crate::ast::{Expression, Node, NodeKind, Operator, Step, StepKind};
use crate::compare::holds;
use crate::convert;
use crate::error::{At, EvalError, EvalProblem};
use crate::json;
use crate::method;
use crate::number;
use crate::root::{Followed, Root};
use crate::value::Value;

type Evaluated<T> = Result<T, At<EvalProblem>>;

impl Expression {
    /// The value of the expression.
    ///
    /// # Errors
    /// [`EvalError`] with the position of the step or operator that failed.
    pub fn eval(&self, root: &dyn Root) -> Result<Value, EvalError> {
        Evaluator { root }
            .node(&self.root)
            .map_err(|at| self.error(at))
    }

    /// Whether the expression holds, as a condition: its value converted to a boolean. Null and the empty text count
    /// as false (Spring Cloud Stream fails on them).
    ///
    /// # Errors
    /// [`EvalError`]; also when the value is no boolean.
    pub fn condition(&self, root: &dyn Root) -> Result<bool, EvalError> {
        let value = self.eval(root)?;
        let converted = convert::to_optional_bool(&value);
        converted
            .map(Option::unwrap_or_default)
            .map_err(|problem| self.error(At::new(0, problem)))
    }

    /// The expression's value converted to a Java `Integer`, as a partition selector is asked; `None` for null.
    ///
    /// # Errors
    /// [`EvalError`]; also when the value is no such number.
    pub fn selection(&self, key: &Value) -> Result<Option<i32>, EvalError> {
        let value = self.eval(key)?;
        convert::to_int(&value).map_err(|problem| self.error(At::new(0, problem)))
    }

    fn error(&self, At { position, problem }: At<EvalProblem>) -> EvalError {
        EvalError {
            expression: self.text.clone(),
            position,
            problem,
        }
    }
}

struct Evaluator<'a> {
    root: &'a dyn Root,
}

impl Evaluator<'_> {
    fn node(&self, node: &Node) -> Evaluated<Value> {
        let at = |problem| At::new(node.position, problem);
        match &node.kind {
            NodeKind::Literal(value) => Ok(value.clone()),
            NodeKind::List(elements) => Ok(Value::list(self.all(elements)?)),
            NodeKind::Root => self.root.whole().map_err(|error| at(error.into())),
            NodeKind::Name(_) | NodeKind::Call(..) => self.chain(node, &[]),
            NodeKind::Chain(start, steps) => self.chain(start, steps),
            NodeKind::Abs(position, argument) => self.absolute(*position, argument),
            NodeKind::Negate(operand) => {
                let value = self.node(operand)?;
                let (left, right) = (Value::Int(0).type_name(), value.type_name());
                number::negate(&value).ok_or_else(|| {
                    at(EvalProblem::Operator {
                        operator: "-",
                        left,
                        right,
                    })
                })
            }
            NodeKind::Not(operand) => Ok(Value::Bool(!self.boolean(operand)?)),
            NodeKind::And(first, rest) => self.logical(first, rest, false),
            NodeKind::Or(first, rest) => self.logical(first, rest, true),
            NodeKind::Compare(comparison, left, right) => {
                let (left, right) = (self.node(left)?, self.node(right)?);
                holds(*comparison, &left, &right)
                    .map(Value::Bool)
                    .map_err(at)
            }
            NodeKind::Matches(operand, pattern) => match self.node(operand)? {
                Value::Null => Err(at(EvalProblem::MatchesNull)),
                value => Ok(Value::Bool(pattern.matches(&value.to_string()))),
            },
            NodeKind::Arithmetic(first, rest) => {
                let mut value = self.node(first)?;
                for (operator, right) in rest {
                    value = calculate(*operator, &value, &self.node(right)?).map_err(at)?;
                }
                Ok(value)
            }
            NodeKind::Elvis(left, right) => match self.node(left)? {
                Value::Null => self.node(right),
                Value::Text(text) if text.is_empty() => self.node(right),
                value => Ok(value),
            },
            NodeKind::Ternary(condition, yes, no) => {
                let chosen = if self.boolean(condition)? { yes } else { no };
                self.node(chosen)
            }
        }
    }

    fn all(&self, nodes: &[Node]) -> Evaluated<Vec<Value>> {
        nodes.iter().map(|node| self.node(node)).collect()
    }

    fn boolean(&self, node: &Node) -> Evaluated<bool> {
        convert::to_bool(&self.node(node)?).map_err(|problem| At::new(node.position, problem))
    }

    /// `and` until the first false, `or` until the first true.
    fn logical(&self, first: &Node, rest: &[Node], decides: bool) -> Evaluated<Value> {
        for operand in std::iter::once(first).chain(rest) {
            if self.boolean(operand)? == decides {
                return Ok(Value::Bool(decides));
            }
        }
        Ok(Value::Bool(!decides))
    }

    fn absolute(&self, position: usize, argument: &Node) -> Evaluated<Value> {
        let value = self.node(argument)?;
        number::absolute(&value).ok_or_else(|| {
            let (name, arguments) = ("abs".to_owned(), value.type_name());
            At::new(
                position,
                match value {
                    Value::Null => EvalProblem::NoMethod {
                        name,
                        arguments,
                        on: "Math".to_owned(),
                    },
                    _ => EvalProblem::AmbiguousMethod { name, arguments },
                },
            )
        })
    }

    /// A start and the steps from it: the names that are known are asked of the root in one go.
    fn chain(&self, start: &Node, steps: &[Step]) -> Evaluated<Value> {
        let mut path: Vec<&str> = Vec::with_capacity(steps.len() + 1);
        match &start.kind {
            NodeKind::Root => {}
            NodeKind::Name(name) => path.push(name),
            NodeKind::Call(name, arguments) if arguments.is_empty() && name == "getPayload" => {
                path.push("payload");
            }
            NodeKind::Call(name, arguments) if arguments.is_empty() && name == "getHeaders" => {
                path.push("headers");
            }
            NodeKind::Call(name, arguments) => {
                let target = self
                    .root
                    .whole()
                    .map_err(|error| At::new(start.position, error.into()))?;
                let value = self.call(&target, name, arguments, false, start.position)?;
                return self.steps(value, steps);
            }
            _ => return self.steps(self.node(start)?, steps),
        }
        let names = path.len();
        path.extend(steps.iter().map_while(Step::constant));
        let read = self
            .root
            .follow(&path)
            .map_err(|error| At::new(start.position, error.into()))?;
        let Followed {
            mut value,
            steps: mut followed,
        } = read;
        if followed < names {
            // The root has no such field: the step says so, or gives null where the root is a map.
            value = field(&value, path[0], false)
                .map_err(|problem| At::new(start.position, problem))?;
            followed = names;
        }
        self.steps(value, &steps[followed - names..])
    }

    fn steps(&self, start: Value, steps: &[Step]) -> Evaluated<Value> {
        let mut value = start;
        for step in steps {
            value = match &step.kind {
                StepKind::Field { name, safe } => {
                    field(&value, name, *safe).map_err(|problem| At::new(step.position, problem))?
                }
                StepKind::Call {
                    name,
                    arguments,
                    safe,
                } => self.call(&value, name, arguments, *safe, step.position)?,
                StepKind::Index(index) => self.index(&value, index, step.position)?,
            };
        }
        Ok(value)
    }

    fn call(
        &self,
        target: &Value,
        name: &str,
        arguments: &[Node],
        safe: bool,
        position: usize,
    ) -> Evaluated<Value> {
        if target.is_null() {
            let problem = EvalProblem::MethodOfNull {
                name: name.to_owned(),
            };
            return if safe {
                Ok(Value::Null)
            } else {
                Err(At::new(position, problem))
            };
        }
        let arguments = self.all(arguments)?;
        method::call(target, name, &arguments).map_err(|problem| At::new(position, problem))
    }

    fn index(&self, target: &Value, index: &Node, position: usize) -> Evaluated<Value> {
        let at = |problem| At::new(position, problem);
        if target.is_null() {
            return Err(at(EvalProblem::IndexOfNull));
        }
        // On a map a bare name is the key itself; elsewhere it is read from the root.
        let key = match (&index.kind, target) {
            (NodeKind::Name(name), Value::Map(_)) => Value::text(name.as_str()),
            _ => self.node(index)?,
        };
        element(target, &key).map_err(at)
    }
}

fn calculate(operator: Operator, left: &Value, right: &Value) -> Result<Value, EvalProblem> {
    if operator == Operator::Add
        && (matches!(left, Value::Text(_)) || matches!(right, Value::Text(_)))
    {
        let (left, right) = (
            convert::to_appended_text(left),
            convert::to_appended_text(right),
        );
        return Ok(Value::text(left + &right));
    }
    match number::widen(left, right) {
        Some(pair) => number::calculate(operator, pair),
        None => Err(EvalProblem::Operator {
            operator: operator.sign(),
            left: left.type_name(),
            right: right.type_name(),
        }),
    }
}

/// `target.name`: a missing map key is null, a missing record field an error.
fn field(target: &Value, name: &str, safe: bool) -> Result<Value, EvalProblem> {
    let missing = |fields| EvalProblem::NoField {
        name: name.to_owned(),
        on: target.type_name(),
        fields,
    };
    match target {
        Value::Null if safe => Ok(Value::Null),
        Value::Null => Err(EvalProblem::FieldOfNull {
            name: name.to_owned(),
        }),
        Value::Map(_) => Ok(target.field(name).cloned().unwrap_or_default()),
        Value::Record(record) => {
            let names = || {
                record
                    .fields
                    .iter()
                    .map(|(field, _)| field.to_string())
                    .collect()
            };
            record.field(name).cloned().ok_or_else(|| missing(names()))
        }
        Value::Enum(constant) if name == "name" => Ok(Value::text(constant.clone())),
        // A text that holds JSON is read as what it holds.
        Value::Text(text) => match json::read(text) {
            Some(map @ Value::Map(_)) => field(&map, name, safe),
            _ => Err(missing(Vec::new())),
        },
        _ => Err(missing(Vec::new())),
    }
}

/// `target[key]`.
fn element(target: &Value, key: &Value) -> Result<Value, EvalProblem> {
    let missing = || EvalProblem::NoElement {
        on: target.type_name(),
        index: key.to_string(),
    };
    match target {
        Value::Map(_) if key.is_null() => Err(EvalProblem::NullIndex),
        Value::Map(entries) => Ok(entries
            .iter()
            .find(|(existing, _)| existing == key)
            .map(|(_, value)| value.clone())
            .unwrap_or_default()),
        Value::Record(record) => match key {
            Value::Text(name) => record.field(name).cloned().ok_or_else(missing),
            _ => Err(missing()),
        },
        Value::Text(text) => {
            let index = position(key)?;
            method::substring(text, index, index + 1).map_err(|problem| match problem {
                EvalProblem::OutsideText { length, .. } => {
                    EvalProblem::OutsideText { index, length }
                }
                other => other,
            })
        }
        _ => match target.elements() {
            Some(elements) => {
                let index = position(key)?;
                let found = usize::try_from(index)
                    .ok()
                    .and_then(|index| elements.get(index));
                found.cloned().ok_or(EvalProblem::OutsideList {
                    index,
                    size: elements.len(),
                    array: matches!(target, Value::Array(_)),
                })
            }
            None => Err(missing()),
        },
    }
}

fn position(key: &Value) -> Result<i64, EvalProblem> {
    convert::to_int(key)?
        .map(i64::from)
        .ok_or(EvalProblem::NullIndex)
}
