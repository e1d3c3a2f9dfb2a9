// Reads a list of state machines from standard input, each a definition and a list of expressions, and writes
// a list of what is wrong with each to standard output.
const validate = require("asl-validator");
const jsonata = require("jsonata");

function fault(expression) {
  try {
    jsonata(expression);
    return [];
  } catch (error) {
    return [`${expression}: ${error.message}`];
  }
}

function faults({ definition, expressions }) {
  const { isValid, errors } = validate(definition);
  const found = isValid ? [] : errors.map((error) => error.Message || JSON.stringify(error));
  return [...found, ...expressions.flatMap(fault)];
}

const machines = JSON.parse(require("fs").readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(machines.map(faults)));
