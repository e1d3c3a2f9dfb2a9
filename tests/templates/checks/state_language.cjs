// Reads a state machine's definition and a list of expressions from standard input, and writes what is wrong
// with each to standard output.
const validate = require("asl-validator");
const jsonata = require("jsonata");

const { definition, expressions } = JSON.parse(require("fs").readFileSync(0, "utf8"));

function fault(expression) {
  try {
    jsonata(expression);
    return [];
  } catch (error) {
    return [`${expression}: ${error.message}`];
  }
}

const { isValid, errors } = validate(definition);
const faults = isValid ? [] : errors.map((error) => error.Message || JSON.stringify(error));
process.stdout.write(JSON.stringify([...faults, ...expressions.flatMap(fault)]));
