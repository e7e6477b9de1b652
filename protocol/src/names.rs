//! Topic and group names: derived names, validity, system topics.
