/** An ad server that asks a model what a shopper wants. Copy it as a beginning of your own. */
package inferenceblueprints.adserver;
