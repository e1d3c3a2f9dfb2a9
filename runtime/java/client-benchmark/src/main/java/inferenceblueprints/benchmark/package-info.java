/** Compares clients of an endpoint under the same load. */
package inferenceblueprints.benchmark;
