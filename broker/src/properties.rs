//! Java properties files: parsing with positions.
