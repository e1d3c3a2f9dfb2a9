/** Authentication with IAM, for which {@code software.amazon.awssdk:http-auth-aws} must be on the class path. */
package inferenceblueprints.endpoint.aws;
